//! `read`, `write` and `edit` on real files.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Cursor, Seek, Write as _};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use base64::Engine;
use common::{Bench, run, text};
use image::{DynamicImage, ImageFormat};
use pith_protocol::{Block, ImageBlock};
use pith_tools::image::Normalised;
use serde_json::{Value, json};

fn edit(path: &str, pairs: &[(&str, &str)]) -> Value {
    let edits: Vec<Value> = pairs.iter().map(|(old, new)| json!({"oldText": old, "newText": new})).collect();
    json!({"path": path, "edits": edits})
}

#[test]
fn read_returns_the_requested_lines() {
    run(async {
        let bench = Bench::new();
        bench.file("a.txt", "one\ntwo\nthree\n");
        let check = async |arguments: Value, expected: &str| assert_eq!(bench.ok("read", arguments).await, expected);
        check(json!({"path": "a.txt"}), "one\ntwo\nthree\n").await;
        check(json!({"path": "./x/../a.txt"}), "one\ntwo\nthree\n").await;
        check(
            json!({"path": "a.txt", "offset": 2, "limit": 1}),
            "two\n\n[2 more lines in file. Use offset=3 to continue.]",
        )
        .await;
        check(
            json!({"path": "a.txt", "offset": 2.9, "limit": 1.5}),
            "two\n\n[2 more lines in file. Use offset=3 to continue.]",
        )
        .await;
        check(json!({"path": "a.txt", "offset": -4}), "one\ntwo\nthree\n").await;
        assert_eq!(
            bench.fails("read", json!({"path": "a.txt", "limit": 0})).await,
            "Invalid limit: must be at least 1"
        );
        let beyond = bench.fails("read", json!({"path": "a.txt", "offset": 99})).await;
        assert_eq!(beyond, "Offset 99 is beyond end of file (4 lines total)");
        for (offset, shown) in [(1e30, "1e+30"), (1.5e300, "1.5e+300"), (1e20, "100000000000000000000"), (9.9, "9")] {
            let beyond = bench.fails("read", json!({"path": "a.txt", "offset": offset})).await;
            assert_eq!(beyond, format!("Offset {shown} is beyond end of file (4 lines total)"));
        }
    });
}

#[test]
fn unreadable_files_are_refused_with_a_reason() {
    run(async {
        let bench = Bench::new();
        bench.file("a.txt", "");
        let cwd = bench.workbench.base.cwd.display().to_string();
        let check = async |path: &str, expected: &str| {
            assert_eq!(bench.fails("read", json!({"path": path})).await, expected.replace("<CWD>", &cwd));
        };
        check("none.txt", "ENOENT: no such file or directory, access '<CWD>/none.txt'").await;
        check("a.txt/x", "ENOTDIR: not a directory, access '<CWD>/a.txt/x'").await;
        check(".", "EISDIR: illegal operation on a directory, read").await;
        check("/dev/null", "EINVAL: not a regular file but a device, read '/dev/null'").await;
        let pipe = bench.path("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        check("pipe", "EINVAL: not a regular file but a named pipe, read '<CWD>/pipe'").await;
    });
}

#[test]
fn odd_names_are_found() {
    run(async {
        let bench = Bench::new();
        for name in ["narrow\u{202f}space.txt", "@x", "caf\u{e9}.txt"] {
            bench.file(name, name);
            assert_eq!(bench.ok("read", json!({"path": name})).await, name);
        }
        fs::create_dir_all(bench.dir.path().join("home")).unwrap();
        fs::write(bench.dir.path().join("home/h.txt"), "home").unwrap();
        assert_eq!(bench.ok("read", json!({"path": "~/h.txt"})).await, "home");
        bench.file("plain", "plain");
        assert_eq!(bench.ok("read", json!({"path": "@plain"})).await, "plain");
    });
}

#[test]
fn binary_files_are_described() {
    run(async {
        let bench = Bench::new();
        bench.file("prog", b"\x7fELF\x02\x01\0\0more");
        let expected = "[Binary file, contents not shown: ELF executable or library, 12B]";
        assert_eq!(bench.ok("read", json!({"path": "prog"})).await, expected);
        // A NUL after the first 8 KiB is treated as text.
        bench.file("late", [b"x".repeat(9000).as_slice(), b"\0"].concat());
        assert!(bench.ok("read", json!({"path": "late"})).await.ends_with("x\0"));
    });
}

#[test]
fn a_huge_file_is_read_in_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("small"), "x").unwrap();
    let mut file = fs::File::create(dir.path().join("log")).unwrap();
    file.write_all("first\n".repeat(2000).as_bytes()).unwrap();
    // A sparse file: one very long line that takes no room on disk.
    file.seek(std::io::SeekFrom::Start(64 << 20)).unwrap();
    file.write_all(b"\nlast\n").unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_test-agent"))
        .args(["read", dir.path().to_str().unwrap(), "log"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["text"], "last\n\n[1 more lines in file. Use offset=2003 to continue.]");
    assert!(report["kilobytes"].as_u64().unwrap() < 5000, "{report}");
}

fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::new_rgb8(width, height).write_to(&mut bytes, format).expect("it can be encoded");
    bytes.into_inner()
}

#[test]
fn images_are_shown() {
    run(async {
        let bench = Bench::new();
        let png = picture(3, 2, ImageFormat::Png);
        bench.file("named.txt", &png);
        let output = bench.call("read", json!({"path": "named.txt"})).await;
        let [Block::Text(label), Block::Image(image)] = output.content.as_slice() else { panic!("{output:?}") };
        assert_eq!((label.text.as_str(), image.mime_type.as_str()), ("Read image file [image/png]", "image/png"));
        assert_eq!(base64::engine::general_purpose::STANDARD.decode(&image.data).unwrap(), png);
        assert_eq!(output.details, None);
        bench.file("x.bmp", picture(3, 2, ImageFormat::Bmp));
        let converted = bench.call("read", json!({"path": "x.bmp"})).await;
        assert_eq!(text(&converted), "Read image file [image/png]\n[Image converted from image/bmp to image/png.]");
        bench.file("cut.png", &png[..40]);
        let broken = bench.call("read", json!({"path": "cut.png"})).await;
        let note = "[Image omitted: could not be resized below the inline image size limit.]";
        assert_eq!((text(&broken), broken.content.len()), (format!("Read image file [image/png]\n{note}"), 1));
    });
}

#[test]
fn large_images_are_made_smaller_unless_told_otherwise() {
    run(async {
        let wide = picture(2500, 4, ImageFormat::Png);
        let bench = Bench::new();
        bench.file("wide.png", &wide);
        let note =
            "[Image: original 2500x4, displayed at 2000x3. Multiply coordinates by 1.25 to map to original image.]";
        assert_eq!(bench.ok("read", json!({"path": "wide.png"})).await, format!("Read image file [image/png]\n{note}"));
        let bench = Bench::with(|options| options.auto_resize_images = false);
        bench.file("wide.png", &wide);
        assert_eq!(bench.ok("read", json!({"path": "wide.png"})).await, "Read image file [image/png]");
    });
}

#[test]
fn inline_images_are_fitted_to_the_model() {
    run(async {
        let bench = Bench::new();
        let inline = |width| {
            let data = base64::engine::general_purpose::STANDARD.encode(picture(width, 4, ImageFormat::Png));
            ImageBlock { data, mime_type: "image/png".to_owned() }
        };
        let unchanged = Normalised::Image { block: inline(30), notes: Vec::new() };
        assert_eq!(bench.workbench.normalise_image(inline(30)).await, unchanged);
        bench.workbench.update_call_options(|call_options| call_options.image_limits.width = 20);
        let Normalised::Image { notes, .. } = bench.workbench.normalise_image(inline(30)).await else {
            panic!("left out")
        };
        assert!(notes[0].starts_with("[Image: original 30x4, displayed at 20x3."), "{notes:?}");
    });
}

#[test]
fn a_model_without_images_is_told_so() {
    run(async {
        let bench = Bench::new();
        bench.file("a.png", picture(3, 2, ImageFormat::Png));
        bench.workbench.update_call_options(|call_options| call_options.model_sees_images = false);
        let output = bench.call("read", json!({"path": "a.png"})).await;
        let note = "[Current model does not support images. The image will be omitted from this request.]";
        assert_eq!((text(&output), output.content.len()), (format!("Read image file [image/png]\n{note}"), 2));
    });
}

#[test]
fn unsupported_images_are_reported() {
    run(async {
        let bench = Bench::new();
        bench.file("a.avif", b"\0\0\0\x20ftypavif\0\0\0\0");
        let report = "Read image file [image/avif]\n[Image omitted: images of this type cannot be shown.]";
        assert_eq!(bench.ok("read", json!({"path": "a.avif"})).await, report);
        bench.file("a.svg", "<svg>\n</svg>\n");
        let report = bench.ok("read", json!({"path": "a.svg"})).await;
        assert!(report.contains("[image/svg+xml]") && report.contains("Use offset=1"), "{report}");
        assert_eq!(bench.ok("read", json!({"path": "a.svg", "offset": 1})).await, "<svg>\n</svg>\n");
    });
}

#[test]
fn write_creates_and_replaces_files() {
    run(async {
        let bench = Bench::new();
        bench.file("old.txt", "old and longer");
        for (path, content) in
            [("new.txt", "hello\n"), ("deep/er/new.txt", "x"), ("old.txt", "new"), ("crlf", "a\r\nb")]
        {
            let output = bench.call("write", json!({"path": path, "content": content})).await;
            assert_eq!((text(&output), output.details), (format!("Successfully wrote to {path}"), None));
            assert_eq!(bench.contents(path), content.as_bytes());
        }
    });
}

#[test]
fn unwritable_paths_are_refused_with_a_reason() {
    run(async {
        let bench = Bench::new();
        bench.file("d/a.txt", "");
        let cwd = bench.workbench.base.cwd.display().to_string();
        let check = async |path: &str, expected: &str| {
            let got = bench.fails("write", json!({"path": path, "content": "x"})).await;
            assert_eq!(got, expected.replace("<CWD>", &cwd));
        };
        check("d", "EISDIR: illegal operation on a directory, open '<CWD>/d'").await;
        check("", "EISDIR: illegal operation on a directory, open '<CWD>'").await;
        check("d/a.txt/x", "EEXIST: file already exists, mkdir '<CWD>/d/a.txt'").await;
        check("d/a.txt/y/x", "ENOTDIR: not a directory, mkdir '<CWD>/d/a.txt/y'").await;
    });
}

#[test]
fn edit_replaces_text_and_shows_the_diff() {
    run(async {
        let bench = Bench::new();
        bench.file("a.txt", "one\ntwo\nthree\n");
        let output = bench.call("edit", edit("a.txt", &[("two", "2")])).await;
        assert_eq!(text(&output), "Successfully replaced 1 block(s) in a.txt.");
        let details = json!({
            "diff": " 1 one\n-2 two\n+2 2\n 3 three",
            "patch": "--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
            "firstChangedLine": 2,
        });
        assert_eq!(output.details, Some(details));
        let output = bench.ok("edit", json!({"path": "a.txt", "oldText": "2", "newText": "two"})).await;
        assert_eq!(output, "Successfully replaced 1 block(s) in a.txt.");
        assert_eq!(bench.contents("a.txt"), b"one\ntwo\nthree\n");
    });
}

#[test]
fn edits_that_fail_change_nothing() {
    run(async {
        let bench = Bench::new();
        bench.file("a.txt", "dup\nx\ndup\n");
        let check = async |arguments: Value, expected: &str| assert_eq!(bench.fails("edit", arguments).await, expected);
        check(edit("none.txt", &[("a", "b")]), "Could not edit file: none.txt. Error code: ENOENT.").await;
        check(edit("a.txt/x", &[("a", "b")]), "Could not edit file: a.txt/x. Error code: ENOTDIR.").await;
        check(edit(".", &[("a", "b")]), "EISDIR: illegal operation on a directory, read").await;
        let pipe = bench.path("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        check(edit("pipe", &[("a", "b")]), "Could not edit file: pipe. Error code: EINVAL.").await;
        check(edit("/dev/null", &[("a", "b")]), "Could not edit file: /dev/null. Error code: EINVAL.").await;
        let several = edit("a.txt", &[("x", "y"), ("zzz", "y")]);
        check(
            several,
            "Could not find edits[1] in a.txt. The oldText must match exactly including all whitespace and newlines.",
        )
        .await;
        assert_eq!(bench.contents("a.txt"), b"dup\nx\ndup\n");
    });
}

#[test]
fn edits_keep_bytes_endings_and_mode() {
    run(async {
        let bench = Bench::new();
        let path = bench.file("latin", b"caf\xe9 needle\nl2\r\n\xff\n");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        bench.ok("edit", edit("latin", &[("needle", "pin"), ("l2", "L2")])).await;
        assert_eq!(bench.contents("latin"), b"caf\xe9 pin\nL2\r\n\xff\n");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        symlink("latin", bench.path("link")).unwrap();
        bench.ok("edit", edit("link", &[("pin", "nail")])).await;
        assert!(bench.path("link").is_symlink());
        assert_eq!(bench.contents("latin"), b"caf\xe9 nail\nL2\r\n\xff\n");
    });
}

#[test]
fn calls_on_one_file_take_turns_in_order() {
    run(async {
        let bench = Bench::new();
        bench.file("a.txt", "0\n");
        let calls: Vec<_> = (0..20)
            .map(|n| bench.start("edit", edit("a.txt", &[(&format!("{n}\n"), &format!("{}\n", n + 1))])))
            .collect();
        // Polled from the last to the first: the order of the calls decides.
        let mut tasks: Vec<_> = calls.into_iter().rev().map(tokio::spawn).collect();
        while let Some(task) = tasks.pop() {
            let output = task.await.unwrap();
            assert!(!output.is_error, "{output:?}");
        }
        assert_eq!(bench.contents("a.txt"), b"20\n");
    });
}

#[test]
fn changes_by_others_are_mentioned() {
    run(async {
        let note = "\n\n[Note: a.txt had changed on disk since it was last read or written in this session.]";
        let bench = Bench::new();
        bench.file("a.txt", "one\n");
        assert_eq!(
            bench.ok("edit", edit("a.txt", &[("one", "two")])).await,
            "Successfully replaced 1 block(s) in a.txt."
        );
        bench.file("a.txt", "three, longer\n");
        let edited = bench.ok("edit", edit("a.txt", &[("three", "four")])).await;
        assert_eq!(edited, format!("Successfully replaced 1 block(s) in a.txt.{note}"));
        assert_eq!(bench.ok("write", json!({"path": "a.txt", "content": "five"})).await, "Successfully wrote to a.txt");
        bench.ok("read", json!({"path": "a.txt"})).await;
        bench.file("a.txt", "changed again");
        assert_eq!(
            bench.ok("write", json!({"path": "a.txt", "content": "six"})).await,
            format!("Successfully wrote to a.txt{note}")
        );
        let quiet = Bench::with(|options| options.warn_changed_files = false);
        quiet.file("a.txt", "one\n");
        quiet.ok("read", json!({"path": "a.txt"})).await;
        quiet.file("a.txt", "changed\n");
        assert_eq!(quiet.ok("write", json!({"path": "a.txt", "content": "x"})).await, "Successfully wrote to a.txt");
    });
}

#[test]
fn aborted_calls_change_nothing() {
    run(async {
        let bench = Bench::new();
        bench.file("a.txt", "one\n");
        bench.cancel.cancel();
        for (tool, arguments) in [
            ("read", json!({"path": "a.txt"})),
            ("write", json!({"path": "a.txt", "content": "x"})),
            ("edit", edit("a.txt", &[("one", "two")])),
            ("grep", json!({"pattern": "x"})),
            ("find", json!({"pattern": "x"})),
            ("ls", json!({})),
        ] {
            assert_eq!(bench.fails(tool, arguments).await, "Operation aborted", "{tool}");
        }
        assert_eq!(bench.contents("a.txt"), b"one\n");
    });
}

#[test]
fn confined_tools_stay_inside() {
    run(async {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        let bench = Bench::with(|options| options.roots = Some(Vec::new()));
        let root = bench.workbench.base.cwd.clone();
        let bench = Bench {
            workbench: pith_tools::Workbench::new(
                root.clone(),
                pith_tools::WorkbenchOptions { roots: Some(vec![root]), ..Default::default() },
            ),
            ..bench
        };
        bench.file("a.txt", "inside\n");
        symlink(outside.path(), bench.path("door")).unwrap();
        assert_eq!(bench.ok("read", json!({"path": "a.txt"})).await, "inside\n");
        let secret = outside.path().join("secret");
        for (tool, arguments) in [
            ("read", json!({"path": "door/secret"})),
            ("read", json!({"path": secret})),
            ("write", json!({"path": "door/new", "content": "x"})),
            ("edit", edit("door/secret", &[("x", "y")])),
            ("grep", json!({"pattern": "x", "path": "door"})),
            ("find", json!({"pattern": "*", "path": "/"})),
            ("ls", json!({"path": ".."})),
        ] {
            let refusal = bench.fails(tool, arguments.clone()).await;
            assert!(
                refusal.starts_with("EACCES: outside the directories allowed by tools.root, "),
                "{tool} {arguments}: {refusal}"
            );
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        bench.ok("edit", edit("a.txt", &[("inside", "in")])).await;
    });
}

#[test]
fn kill_9_leaves_the_old_or_the_new_version() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("big");
    for round in 0..3u64 {
        let mut agent = std::process::Command::new(env!("CARGO_BIN_EXE_test-agent"))
            .args(["write", dir.path().to_str().unwrap(), "big"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
        // At another moment of the second version each time.
        std::thread::sleep(Duration::from_millis(15 * round));
        agent.kill().unwrap();
        agent.wait().unwrap();
        let contents = fs::read(&path).unwrap();
        assert!(contents == vec![contents[0]; 50 << 20], "a mixture");
        assert!(fs::read_dir(dir.path()).unwrap().count() <= 2);
    }
}
