//! Operating system errors in the form that models and hosts already match on: `<CODE>: <text>, <call> '<path>'`.

use std::io;
use std::path::Path;

use rustix::io::Errno;

/// Describes an error of a call on a path.
pub fn on_path(error: &io::Error, call: &str, path: &Path) -> String {
    format!("{}, {call} '{}'", described(error), path.display())
}

/// Describes an error of a call on an open file.
pub fn on_open_file(error: &io::Error, call: &str) -> String {
    format!("{}, {call}", described(error))
}

/// Returns the symbolic name alone, such as `ENOENT`.
pub fn code(error: &io::Error) -> String {
    match known(error) {
        Some((_, code, _)) => (*code).to_owned(),
        None => match error.raw_os_error() {
            Some(number) => format!("E{number}"),
            None => "EIO".to_owned(),
        },
    }
}

fn described(error: &io::Error) -> String {
    match known(error) {
        Some((_, code, text)) => format!("{code}: {text}"),
        None => format!("{}: {error}", code(error)),
    }
}

fn known(error: &io::Error) -> Option<&'static (Errno, &'static str, &'static str)> {
    let errno = Errno::from_io_error(error)?;
    KNOWN.iter().find(|(known, _, _)| *known == errno)
}

const KNOWN: &[(Errno, &str, &str)] = &[
    (Errno::NOENT, "ENOENT", "no such file or directory"),
    (Errno::ACCESS, "EACCES", "permission denied"),
    (Errno::ISDIR, "EISDIR", "illegal operation on a directory"),
    (Errno::NOTDIR, "ENOTDIR", "not a directory"),
    (Errno::EXIST, "EEXIST", "file already exists"),
    (Errno::PERM, "EPERM", "operation not permitted"),
    (Errno::LOOP, "ELOOP", "too many symbolic links encountered"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG", "name too long"),
    (Errno::NOSPC, "ENOSPC", "no space left on device"),
    (Errno::DQUOT, "EDQUOT", "disk quota exceeded"),
    (Errno::ROFS, "EROFS", "read-only file system"),
    (Errno::FBIG, "EFBIG", "file too large"),
    (Errno::BUSY, "EBUSY", "resource busy or locked"),
    (Errno::TXTBSY, "ETXTBSY", "text file is busy"),
    (Errno::INVAL, "EINVAL", "invalid argument"),
    (Errno::IO, "EIO", "i/o error"),
    (Errno::MFILE, "EMFILE", "too many open files"),
    (Errno::NFILE, "ENFILE", "file table overflow"),
    (Errno::NOMEM, "ENOMEM", "not enough memory"),
    (Errno::NODEV, "ENODEV", "no such device"),
    (Errno::NXIO, "ENXIO", "no such device or address"),
    (Errno::NOTEMPTY, "ENOTEMPTY", "directory not empty"),
    (Errno::XDEV, "EXDEV", "cross-device link not permitted"),
    (Errno::AGAIN, "EAGAIN", "resource temporarily unavailable"),
    (Errno::STALE, "ESTALE", "stale file handle"),
    (Errno::TIMEDOUT, "ETIMEDOUT", "connection timed out"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_comes_first() {
        let missing = io::Error::from_raw_os_error(2);
        assert_eq!(on_path(&missing, "access", Path::new("/x")), "ENOENT: no such file or directory, access '/x'");
        assert_eq!(on_open_file(&Errno::ISDIR.into(), "read"), "EISDIR: illegal operation on a directory, read");
        assert_eq!(code(&missing), "ENOENT");
    }

    #[test]
    fn an_error_without_a_name_keeps_its_number() {
        assert_eq!(code(&io::Error::from_raw_os_error(9999)), "E9999");
        assert_eq!(code(&io::Error::other("odd")), "EIO");
    }
}
