//! Asks the linker for packed relocations.
//!
//! A position-independent program of this size carries over a megabyte of
//! relocations that are read once, at start-up, and stay in its memory. Packed
//! they are a few kilobytes. C libraries understand them since glibc 2.36, so
//! a machine with an older one builds the plain form. `PITH_PORTABLE` asks for
//! the plain form too: a program that is to start on other machines must not
//! depend on the C library of the one it was built on. A static program brings
//! the C library that reads them, and is packed in any case.
#![allow(clippy::print_stdout, reason = "how a build script speaks to cargo")]

use std::env;
use std::process::Command;

/// The first glibc that reads packed relocations.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PITH_PORTABLE");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    let is_static = env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|features| features.contains("crt-static"));
    let is_portable = env::var_os("PITH_PORTABLE").is_some_and(|value| !value.is_empty());
    let is_read_by_ours = || env::var("HOST") == env::var("TARGET") && glibc().is_some_and(|version| version >= FIRST);
    if is_glibc && (is_static || !is_portable) && is_read_by_ours() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's C library: `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
