//! System errors in the form of Node.

use std::io;

use rquickjs::{Ctx, Exception, Value};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The members of a Node exception about the file system or a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    pub code: Box<str>,
    pub errno: i32,
    pub syscall: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dest: Option<Box<str>>,
    pub message: Box<str>,
}

/// Names and texts of the errors that extensions may get.
const KNOWN: &[(Errno, &str, &str)] = &[
    (Errno::PERM, "EPERM", "operation not permitted"),
    (Errno::NOENT, "ENOENT", "no such file or directory"),
    (Errno::SRCH, "ESRCH", "no such process"),
    (Errno::INTR, "EINTR", "interrupted system call"),
    (Errno::IO, "EIO", "i/o error"),
    (Errno::NXIO, "ENXIO", "no such device or address"),
    (Errno::TOOBIG, "E2BIG", "argument list too long"),
    (Errno::NOEXEC, "ENOEXEC", "exec format error"),
    (Errno::BADF, "EBADF", "bad file descriptor"),
    (Errno::AGAIN, "EAGAIN", "resource temporarily unavailable"),
    (Errno::NOMEM, "ENOMEM", "not enough memory"),
    (Errno::ACCESS, "EACCES", "permission denied"),
    (Errno::FAULT, "EFAULT", "bad address in system call argument"),
    (Errno::BUSY, "EBUSY", "resource busy or locked"),
    (Errno::EXIST, "EEXIST", "file already exists"),
    (Errno::XDEV, "EXDEV", "cross-device link not permitted"),
    (Errno::NODEV, "ENODEV", "no such device"),
    (Errno::NOTDIR, "ENOTDIR", "not a directory"),
    (Errno::ISDIR, "EISDIR", "illegal operation on a directory"),
    (Errno::INVAL, "EINVAL", "invalid argument"),
    (Errno::NFILE, "ENFILE", "file table overflow"),
    (Errno::MFILE, "EMFILE", "too many open files"),
    (Errno::NOTTY, "ENOTTY", "inappropriate ioctl for device"),
    (Errno::TXTBSY, "ETXTBSY", "text file is busy"),
    (Errno::FBIG, "EFBIG", "file too large"),
    (Errno::NOSPC, "ENOSPC", "no space left on device"),
    (Errno::SPIPE, "ESPIPE", "invalid seek"),
    (Errno::ROFS, "EROFS", "read-only file system"),
    (Errno::MLINK, "EMLINK", "too many links"),
    (Errno::PIPE, "EPIPE", "broken pipe"),
    (Errno::RANGE, "ERANGE", "result too large"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG", "name too long"),
    (Errno::NOSYS, "ENOSYS", "function not implemented"),
    (Errno::NOTEMPTY, "ENOTEMPTY", "directory not empty"),
    (Errno::LOOP, "ELOOP", "too many symbolic links encountered"),
    (Errno::UNATCH, "EUNATCH", "protocol driver not attached"),
    (Errno::NODATA, "ENODATA", "no data available"),
    (Errno::NONET, "ENONET", "machine is not on the network"),
    (Errno::PROTO, "EPROTO", "protocol error"),
    (Errno::OVERFLOW, "EOVERFLOW", "value too large for defined data type"),
    (Errno::ILSEQ, "EILSEQ", "illegal byte sequence"),
    (Errno::NOTSOCK, "ENOTSOCK", "socket operation on non-socket"),
    (Errno::DESTADDRREQ, "EDESTADDRREQ", "destination address required"),
    (Errno::MSGSIZE, "EMSGSIZE", "message too long"),
    (Errno::PROTOTYPE, "EPROTOTYPE", "protocol wrong type for socket"),
    (Errno::NOPROTOOPT, "ENOPROTOOPT", "protocol not available"),
    (Errno::PROTONOSUPPORT, "EPROTONOSUPPORT", "protocol not supported"),
    (Errno::SOCKTNOSUPPORT, "ESOCKTNOSUPPORT", "socket type not supported"),
    (Errno::NOTSUP, "ENOTSUP", "operation not supported on socket"),
    (Errno::AFNOSUPPORT, "EAFNOSUPPORT", "address family not supported"),
    (Errno::ADDRINUSE, "EADDRINUSE", "address already in use"),
    (Errno::ADDRNOTAVAIL, "EADDRNOTAVAIL", "address not available"),
    (Errno::NETDOWN, "ENETDOWN", "network is down"),
    (Errno::NETUNREACH, "ENETUNREACH", "network is unreachable"),
    (Errno::CONNABORTED, "ECONNABORTED", "software caused connection abort"),
    (Errno::CONNRESET, "ECONNRESET", "connection reset by peer"),
    (Errno::NOBUFS, "ENOBUFS", "no buffer space available"),
    (Errno::ISCONN, "EISCONN", "socket is already connected"),
    (Errno::NOTCONN, "ENOTCONN", "socket is not connected"),
    (Errno::SHUTDOWN, "ESHUTDOWN", "cannot send after transport endpoint shutdown"),
    (Errno::TIMEDOUT, "ETIMEDOUT", "connection timed out"),
    (Errno::CONNREFUSED, "ECONNREFUSED", "connection refused"),
    (Errno::HOSTDOWN, "EHOSTDOWN", "host is down"),
    (Errno::HOSTUNREACH, "EHOSTUNREACH", "host is unreachable"),
    (Errno::ALREADY, "EALREADY", "connection already in progress"),
    (Errno::REMOTEIO, "EREMOTEIO", "remote I/O error"),
    (Errno::CANCELED, "ECANCELED", "operation canceled"),
];

/// Returns number, name and text of every known error, as JSON.
pub(super) fn known() -> String {
    let rows: Vec<(i32, &str, &str)> =
        KNOWN.iter().map(|(errno, name, text)| (-errno.raw_os_error(), *name, *text)).collect();
    serde_json::to_string(&rows).expect("plain data serializes")
}

impl Failure {
    /// Describes an error of `syscall` on `path`.
    pub fn new(error: &io::Error, syscall: &str, path: Option<&str>) -> Self {
        let raw = error.raw_os_error().unwrap_or(0);
        let known = KNOWN.iter().find(|(errno, ..)| errno.raw_os_error() == raw);
        let (code, text) = match known {
            Some((_, code, text)) => ((*code).to_owned(), (*text).to_owned()),
            None if raw == 0 => by_kind(error),
            None => (format!("E{raw}"), error.to_string()),
        };
        let place = path.map(|path| format!(" '{path}'")).unwrap_or_default();
        let message = format!("{code}: {text}, {syscall}{place}").into();
        Failure {
            code: code.into(),
            errno: -raw,
            syscall: syscall.into(),
            path: path.map(Box::from),
            dest: None,
            message,
        }
    }

    /// Creates a failure without a system call.
    pub fn of(errno: Errno, syscall: &str, path: Option<&str>) -> Self {
        Failure::new(&io::Error::from_raw_os_error(errno.raw_os_error()), syscall, path)
    }

    /// Adds the second path of the operation.
    pub fn to(mut self, dest: &str) -> Self {
        self.message = format!("{} -> '{dest}'", self.message).into();
        self.dest = Some(dest.into());
        self
    }

    /// Creates the exception.
    pub fn to_js<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
        let exception = Exception::from_message(ctx.clone(), &self.message)?;
        let object = exception.into_object();
        object.set("code", &*self.code)?;
        object.set("errno", self.errno)?;
        object.set("syscall", &*self.syscall)?;
        if let Some(path) = &self.path {
            object.set("path", &**path)?;
        }
        if let Some(dest) = &self.dest {
            object.set("dest", &**dest)?;
        }
        Ok(object.into_value())
    }

    /// Throws the exception.
    pub fn throw(&self, ctx: &Ctx<'_>) -> rquickjs::Error {
        match self.to_js(ctx) {
            Ok(value) => ctx.throw(value),
            Err(error) => error,
        }
    }
}

fn by_kind(error: &io::Error) -> (String, String) {
    let code = match error.kind() {
        io::ErrorKind::NotFound => "ENOENT",
        io::ErrorKind::PermissionDenied => "EACCES",
        io::ErrorKind::AlreadyExists => "EEXIST",
        io::ErrorKind::InvalidInput => "EINVAL",
        io::ErrorKind::InvalidData => "EILSEQ",
        io::ErrorKind::TimedOut => "ETIMEDOUT",
        _ => "EIO",
    };
    (code.to_owned(), error.to_string())
}
