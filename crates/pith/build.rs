//! Asks the linker for a program at a fixed address.
//!
//! A program that can be loaded anywhere holds a megabyte of addresses (tables of functions, names of
//! variants, places of panics) that the loader must correct before the first line of `main` runs: some 250
//! pages are copied for it, which takes a quarter of the time from spawn to the first answer and stays in
//! the memory of every process. At a fixed address the linker has filled them in. Stack, heap and libraries
//! are placed at random as before; the program's own code is not. `PITH_PIE=1` asks for a program whose code
//! is placed at random too, for those who prefer that to the time.
#![allow(clippy::print_stdout, reason = "how a build script speaks to cargo")]

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PITH_PIE");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    // The word for the linker would undo `-static`; a static build says it with its compiler flags.
    let is_static = env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|features| features.contains("crt-static"));
    let is_asked_for = env::var_os("PITH_PIE").is_some_and(|value| !value.is_empty());
    if is_glibc && !is_static && !is_asked_for {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
