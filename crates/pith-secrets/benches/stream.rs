//! What it costs to keep known values out of 100 MB of output. `cargo bench -p pith-secrets`

#![allow(clippy::print_stdout, reason = "a program that prints figures")]

use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use pith_secrets::{Secrets, Stream};

const N_BYTES: usize = 100 << 20;
/// What the tools read at once.
const PIECE: usize = 64 << 10;

fn main() {
    let text = text();
    let plain = best_of(|| read(&text, &mut |piece| check(piece)));
    println!("100 MB read from a pipe and checked as text: {plain:?}");
    for n_values in [1, 10, 100, 1000] {
        let secrets = Arc::new(Secrets::default());
        (0..n_values).for_each(|number| secrets.remember(&value(number)));
        let start = cpu_time();
        secrets.redact("x");
        let built = cpu_time() - start;
        let took = best_of(|| {
            let mut stream = Stream::new(Some(secrets.clone()));
            read(&text, &mut |piece| stream.push(piece, check));
            stream.finish(check);
        });
        let (searched, rate) = (best_of(|| search(&secrets, &text)), N_BYTES as f64 / 1e6);
        let (rate, added) = (rate / searched.as_secs_f64(), took.as_secs_f64() / plain.as_secs_f64() * 100.0 - 100.0);
        println!(
            "{n_values:>4} values: built in {built:?}, {took:?} ({added:+.1} %); alone {searched:?} ({rate:.0} MB/s)"
        );
    }
}

/// Returns the least time that this thread had a processor in some tries: others may use the machine.
fn best_of(mut work: impl FnMut()) -> Duration {
    let tries = (0..7).map(|_| {
        let start = cpu_time();
        work();
        cpu_time() - start
    });
    tries.min().expect("seven tries")
}

fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

/// Reads the text from a pipe into which another thread writes it.
fn read(text: &[u8], take: &mut dyn FnMut(&[u8])) {
    let (mut output, mut input) = std::io::pipe().expect("a pipe");
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(text).expect("a reader"));
        let mut piece = vec![0; PIECE];
        loop {
            match output.read(&mut piece).expect("a writer") {
                0 => break,
                n => take(&piece[..n]),
            }
        }
    });
}

/// The least that any tool does with its output.
fn check(piece: &[u8]) {
    let text = black_box(String::from_utf8_lossy(piece));
    black_box(text.lines().count());
}

fn search(secrets: &Arc<Secrets>, text: &[u8]) {
    let mut stream = Stream::new(Some(secrets.clone()));
    let mut n_bytes = 0;
    for piece in text.chunks(PIECE) {
        stream.push(piece, |bytes| n_bytes += black_box(bytes).len());
    }
    stream.finish(|bytes| n_bytes += bytes.len());
    assert_eq!(n_bytes, text.len(), "no value is in it");
}

/// A key as vendors make them: a prefix that others share, then what is random.
fn value(number: u64) -> String {
    let prefix = ["sk-proj-", "sk-ant-api03-", "ghp_", "AKIA", "xoxb-"][(number % 5) as usize];
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let random = (0..40).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[(state % 62) as usize])
    });
    format!("{prefix}{}", random.collect::<String>())
}

/// Lines of a build, with numbers that differ.
fn text() -> Vec<u8> {
    let mut text = Vec::with_capacity(N_BYTES);
    let mut number = 0_u64;
    while text.len() < N_BYTES {
        number += 1;
        let line = format!(
            "   Compiling crate-{number} v0.{}.{} (/home/user/project/crates/crate-{number})\n",
            number % 97,
            number % 13
        );
        text.extend_from_slice(line.as_bytes());
    }
    text.truncate(N_BYTES);
    text
}
