//! The calls of `node:fs`, one arm each.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{Access, AtFlags, CWD, Timespec, Timestamps, access, statfs, utimensat};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::errno::Failure;
use super::fs::{Descriptors, FsResult, Request};
use super::fs_tree;

type Outcome = Result<FsResult, Failure>;

/// Carries out one call.
pub fn perform(name: &str, request: &Request, open: &Descriptors) -> Outcome {
    let path = Path::new(&request.path);
    let to = Path::new(&request.to);
    let at = |syscall: &'static str| move |error: io::Error| Failure::new(&error, syscall, Some(&request.path));
    let between = |syscall: &'static str| {
        move |error: io::Error| Failure::new(&error, syscall, Some(&request.path)).to(&request.to)
    };
    match name {
        "access" => done(check_access(request).map_err(at("access"))),
        "stat" => stat(request).map_err(at(if request.follow { "stat" } else { "lstat" })),
        "lstat" => stat(request).map_err(at("lstat")),
        "fstat" => open.get(request.fd, "fstat").and_then(|file| {
            file.metadata()
                .map(|facts| FsResult::Json(facts_of(&facts)))
                .map_err(|error| Failure::new(&error, "fstat", None))
        }),
        "readFile" => read_file(request, open),
        "writeFile" | "appendFile" => write_file(request, open),
        "readdir" => fs_tree::list(path, request.recursive).map(FsResult::Json).map_err(at("scandir")),
        "mkdir" => fs_tree::make(path, request.recursive, request.mode).map(FsResult::Json).map_err(at("mkdir")),
        "mkdtemp" => fs_tree::make_temporary(&request.path).map(FsResult::Json).map_err(at("mkdtemp")),
        "rmdir" if request.recursive => done(fs::remove_dir_all(path).map_err(at("rmdir"))),
        "rmdir" => done(fs::remove_dir(path).map_err(at("rmdir"))),
        "rm" => done(fs_tree::remove(path, request.recursive, request.force).map_err(at("rm"))),
        "unlink" => done(fs::remove_file(path).map_err(at("unlink"))),
        "rename" => done(fs::rename(path, to).map_err(between("rename"))),
        "copyFile" => done(fs_tree::copy_file(path, to, request.exclusive).map_err(between("copyfile"))),
        "cp" => done(fs_tree::copy(path, to, request).map_err(between("cp"))),
        "link" => done(fs::hard_link(path, to).map_err(between("link"))),
        "symlink" => done(
            symlink(to, path).map_err(|error| Failure::new(&error, "symlink", Some(&request.to)).to(&request.path)),
        ),
        "readlink" => text(fs::read_link(path).map_err(at("readlink"))?.to_string_lossy()),
        "realpath" => text(fs::canonicalize(path).map_err(at("realpath"))?.to_string_lossy()),
        "chmod" => done(fs::set_permissions(path, permissions(request)).map_err(at("chmod"))),
        "fchmod" => done(open.get(request.fd, "fchmod")?.set_permissions(permissions(request)).map_err(at("fchmod"))),
        "chown" => done(std::os::unix::fs::chown(path, Some(request.uid), Some(request.gid)).map_err(at("chown"))),
        "lchown" => done(std::os::unix::fs::lchown(path, Some(request.uid), Some(request.gid)).map_err(at("lchown"))),
        "fchown" => done(
            std::os::unix::fs::fchown(open.get(request.fd, "fchown")?, Some(request.uid), Some(request.gid))
                .map_err(at("fchown")),
        ),
        "statfs" => file_system(path).map_err(at("statfs")),
        "lutimes" => done(set_link_times(path, request).map_err(at("lutime"))),
        "utimes" => done(set_times(path, request).map_err(at("utime"))),
        "futimes" => done(open.get(request.fd, "futime")?.set_times(times(request)).map_err(at("futime"))),
        "truncate" => done(truncate(path, request).map_err(at("open"))),
        "ftruncate" => done(open.get(request.fd, "ftruncate")?.set_len(length(request)).map_err(at("ftruncate"))),
        "open" => open_file(request).map(|file| FsResult::Json(json!(open.add(file)))).map_err(at("open")),
        "close" => match open.remove(request.fd) {
            Some(_) => done(Ok(())),
            None => Err(Failure::of(Errno::BADF, "close", None)),
        },
        "fsync" | "fdatasync" => done(open.get(request.fd, "fsync")?.sync_all().map_err(at("fsync"))),
        "read" => read_some(request, open),
        "write" => write_some(request, open),
        _ => Err(Failure::of(Errno::NOSYS, name, None)),
    }
}

fn done(outcome: Result<(), Failure>) -> Outcome {
    outcome.map(|()| FsResult::Json(Value::Null))
}

fn text(text: impl AsRef<str>) -> Outcome {
    Ok(FsResult::Json(Value::String(text.as_ref().to_owned())))
}

fn check_access(request: &Request) -> io::Result<()> {
    let mode = request.mode.unwrap_or(0);
    let mut wanted = Access::EXISTS;
    wanted.set(Access::READ_OK, mode & 4 != 0);
    wanted.set(Access::WRITE_OK, mode & 2 != 0);
    wanted.set(Access::EXEC_OK, mode & 1 != 0);
    Ok(access(request.path.as_str(), wanted)?)
}

fn stat(request: &Request) -> io::Result<FsResult> {
    let facts = if request.follow { fs::metadata(&request.path)? } else { fs::symlink_metadata(&request.path)? };
    Ok(FsResult::Json(facts_of(&facts)))
}

fn facts_of(facts: &fs::Metadata) -> Value {
    let millis = |seconds: i64, nanos: i64| seconds as f64 * 1000.0 + nanos as f64 / 1e6;
    let birth = facts.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let changed = millis(facts.ctime(), facts.ctime_nsec());
    json!({
        "kind": fs_tree::kind(facts.file_type()),
        "dev": facts.dev(),
        "ino": facts.ino(),
        "mode": facts.mode(),
        "nlink": facts.nlink(),
        "uid": facts.uid(),
        "gid": facts.gid(),
        "rdev": facts.rdev(),
        "size": facts.size(),
        "blksize": facts.blksize(),
        "blocks": facts.blocks(),
        "atimeMs": millis(facts.atime(), facts.atime_nsec()),
        "mtimeMs": millis(facts.mtime(), facts.mtime_nsec()),
        "ctimeMs": changed,
        "birthtimeMs": birth.map_or(changed, |time| time.as_secs_f64() * 1000.0),
    })
}

fn read_file(request: &Request, open: &Descriptors) -> Outcome {
    let mut bytes = Vec::new();
    match request.fd {
        Some(_) => {
            let file = open.get(request.fd, "read")?;
            (&*file).read_to_end(&mut bytes).map_err(|error| Failure::new(&error, "read", None))?;
        }
        None => {
            let mut file = open_file(request).map_err(|error| Failure::new(&error, "open", Some(&request.path)))?;
            file.read_to_end(&mut bytes).map_err(|error| Failure::new(&error, "read", None))?;
        }
    }
    Ok(if request.as_text { FsResult::Json(Value::String(lossy(bytes))) } else { FsResult::Bytes(bytes) })
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn contents(request: &Request) -> Vec<u8> {
    match (&request.text, &request.bytes) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, Some(bytes)) => STANDARD.decode(bytes).unwrap_or_default(),
        (None, None) => Vec::new(),
    }
}

fn write_file(request: &Request, open: &Descriptors) -> Outcome {
    let bytes = contents(request);
    let written = match request.fd {
        Some(_) => (&*open.get(request.fd, "write")?).write_all(&bytes),
        None => {
            let mut file = open_file(request).map_err(|error| Failure::new(&error, "open", Some(&request.path)))?;
            file.write_all(&bytes)
        }
    };
    done(written.map_err(|error| Failure::new(&error, "write", None)))
}

fn open_file(request: &Request) -> io::Result<File> {
    let flags = request.flags.as_str();
    let mut options = OpenOptions::new();
    match flags.trim_end_matches('s') {
        "" | "r" | "rs" => options.read(true),
        "r+" | "rs+" => options.read(true).write(true),
        "w" => options.write(true).create(true).truncate(true),
        "wx" | "xw" => options.write(true).create_new(true),
        "w+" => options.read(true).write(true).create(true).truncate(true),
        "wx+" | "xw+" => options.read(true).write(true).create_new(true),
        "w!" => options.write(true).create(true).truncate(false),
        "w+!" => options.read(true).write(true).create(true).truncate(false),
        "wx!" => options.write(true).create_new(true),
        "wx+!" => options.read(true).write(true).create_new(true),
        "a" | "a!" | "as" => options.append(true).create(true),
        "ax" | "xa" => options.append(true).create_new(true),
        "a+" => options.read(true).append(true).create(true),
        "ax+" | "xa+" => options.read(true).append(true).create_new(true),
        _ => return Err(io::Error::from_raw_os_error(Errno::INVAL.raw_os_error())),
    };
    if let Some(mode) = request.mode {
        options.mode(mode);
    }
    options.open(&request.path)
}

fn read_some(request: &Request, open: &Descriptors) -> Outcome {
    let file = open.get(request.fd, "read")?;
    let mut bytes = vec![0; length(request) as usize];
    let read = match request.position {
        Some(position) => file.read_at(&mut bytes, position as u64),
        None => (&*file).read(&mut bytes),
    };
    let count = read.map_err(|error| Failure::new(&error, "read", None))?;
    bytes.truncate(count);
    Ok(FsResult::Bytes(bytes))
}

fn write_some(request: &Request, open: &Descriptors) -> Outcome {
    let file = open.get(request.fd, "write")?;
    let bytes = contents(request);
    let written = match request.position {
        Some(position) => (&*file).seek(SeekFrom::Start(position as u64)).and_then(|_| (&*file).write_all(&bytes)),
        None => (&*file).write_all(&bytes),
    };
    written.map_err(|error| Failure::new(&error, "write", None))?;
    Ok(FsResult::Json(json!(bytes.len())))
}

fn length(request: &Request) -> u64 {
    request.length.unwrap_or(0.0).max(0.0) as u64
}

fn truncate(path: &Path, request: &Request) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.set_len(length(request))
}

fn permissions(request: &Request) -> fs::Permissions {
    fs::Permissions::from_mode(request.mode.unwrap_or(0o644))
}

fn times(request: &Request) -> fs::FileTimes {
    let time = |seconds: f64| -> SystemTime { UNIX_EPOCH + Duration::from_secs_f64(seconds.max(0.0)) };
    fs::FileTimes::new().set_accessed(time(request.atime)).set_modified(time(request.mtime))
}

fn set_times(path: &Path, request: &Request) -> io::Result<()> {
    File::open(path)?.set_times(times(request))
}

fn set_link_times(path: &Path, request: &Request) -> io::Result<()> {
    let time =
        |seconds: f64| Timespec { tv_sec: seconds.floor() as i64, tv_nsec: (seconds.fract().abs() * 1e9) as i64 };
    let times = Timestamps { last_access: time(request.atime), last_modification: time(request.mtime) };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn file_system(path: &Path) -> io::Result<FsResult> {
    let facts = statfs(path)?;
    Ok(FsResult::Json(json!({
        "type": facts.f_type,
        "bsize": facts.f_bsize,
        "frsize": facts.f_frsize,
        "blocks": facts.f_blocks,
        "bfree": facts.f_bfree,
        "bavail": facts.f_bavail,
        "files": facts.f_files,
        "ffree": facts.f_ffree,
    })))
}
