//! `node:zlib`, on flate2 and brotli.
//!
//! Output is taken in steps of bounded size, so a few bytes that stand for gigabytes are never unpacked at once: a
//! stream goes on when JavaScript wants the next step, and a one-shot call stops at its limit.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Cursor, Read};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use flate2::{Compression, read};
use rquickjs::function::Func;
use rquickjs::{Ctx, Object, TypedArray};
use serde::Deserialize;

use super::text::{Packed, Text};
use crate::engine::inbox::Payload;
use crate::engine::{State, throw};
use crate::shared::lock;

/// What one step hands out at most.
const STEP: usize = 64 << 10;
/// How many streams are open at a time.
const MAX_STREAMS: usize = 256;
/// The length of a gzip header without a file name.
const GZIP_HEADER: usize = 10;
/// The base-two logarithm of brotli's window, as Node has it.
const BROTLI_WINDOW: u32 = 22;

/// How to pack or unpack.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Method {
    kind: Kind,
    level: Option<i32>,
    /// The most that a one-shot call returns, in bytes.
    #[serde(default)]
    max_output: usize,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Kind {
    Gzip,
    Gunzip,
    Deflate,
    Inflate,
    DeflateRaw,
    InflateRaw,
    BrotliCompress,
    BrotliDecompress,
}

impl Method {
    fn read(text: &str) -> Result<Method, String> {
        crate::json::parse(text)
    }

    /// Returns a reader that packs or unpacks what it reads from `source`.
    fn over(&self, source: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        let level = match self.level {
            Some(level @ 0..=9) => Compression::new(level.unsigned_abs()),
            _ => Compression::default(),
        };
        match self.kind {
            Kind::Gzip => Box::new(read::GzEncoder::new(source, level)),
            Kind::Gunzip => Box::new(read::MultiGzDecoder::new(source)),
            Kind::Deflate => Box::new(read::ZlibEncoder::new(source, level)),
            Kind::Inflate => Box::new(read::ZlibDecoder::new(source)),
            Kind::DeflateRaw => Box::new(read::DeflateEncoder::new(source, level)),
            Kind::InflateRaw => Box::new(read::DeflateDecoder::new(source)),
            Kind::BrotliCompress => {
                let quality = self.level.filter(|level| (0..=11).contains(level)).unwrap_or(11).unsigned_abs();
                Box::new(brotli::CompressorReader::new(source, STEP, quality, BROTLI_WINDOW))
            }
            Kind::BrotliDecompress => Box::new(brotli::Decompressor::new(source, STEP)),
        }
    }

    /// Packs or unpacks all of it.
    fn whole(&self, input: Vec<u8>) -> Result<Vec<u8>, Refusal> {
        let mut output = Vec::new();
        let limit = u64::try_from(self.max_output).unwrap_or(u64::MAX);
        self.over(Cursor::new(input))
            .take(limit.saturating_add(1))
            .read_to_end(&mut output)
            .map_err(|error| refusal(&error))?;
        if output.len() > self.max_output {
            let text = format!("Cannot create a Buffer larger than {} bytes", self.max_output);
            return Err(Refusal { code: "ERR_BUFFER_TOO_LARGE", text });
        }
        Ok(output)
    }
}

/// Why there is no output, with the code that Node gives it.
struct Refusal {
    code: &'static str,
    text: String,
}

impl Refusal {
    /// The form in which it crosses to JavaScript from another thread.
    fn encoded(&self) -> String {
        format!("{}: {}", self.code, self.text)
    }
}

fn refusal(error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Refusal { code: "Z_BUF_ERROR", text: "unexpected end of file".to_owned() },
        _ if error.to_string().contains("header") => {
            Refusal { code: "Z_DATA_ERROR", text: "incorrect header check".to_owned() }
        }
        _ => Refusal { code: "Z_DATA_ERROR", text: error.to_string() },
    }
}

/// The streams that are open, by the number JavaScript knows them by.
#[derive(Default)]
pub struct Codecs {
    open: RefCell<HashMap<u32, Codec>>,
}

struct Codec {
    input: Arc<Mutex<Input>>,
    /// What comes before the output and has not been handed out yet.
    header: Vec<u8>,
    output: Box<dyn Read + Send>,
}

/// What a stream has been given and has not read yet.
#[derive(Default)]
struct Input {
    bytes: Cursor<Vec<u8>>,
    /// Whether nothing will follow.
    is_whole: bool,
}

struct Source(Arc<Mutex<Input>>);

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut input = lock(&self.0);
        let count = input.bytes.read(buffer)?;
        if count == 0 && !input.is_whole { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
    }
}

impl Codecs {
    fn open(&self, number: u32, method: &Method) -> Result<(), Refusal> {
        let mut open = self.open.borrow_mut();
        if open.len() >= MAX_STREAMS {
            let text = format!("more than {MAX_STREAMS} streams are open");
            return Err(Refusal { code: "Z_MEM_ERROR", text });
        }
        let input = Arc::<Mutex<Input>>::default();
        let mut output = method.over(Source(input.clone()));
        // Read on its own: flate2 loses it if the input that follows is not there yet.
        let mut header = vec![0; if let Kind::Gzip = method.kind { GZIP_HEADER } else { 0 }];
        output.read_exact(&mut header).map_err(|error| refusal(&error))?;
        open.insert(number, Codec { input, header, output });
        Ok(())
    }

    /// Gives a stream its next input. JavaScript does so only when it has read all that the last one yields.
    fn give(&self, number: u32, bytes: Vec<u8>, is_last: bool) {
        if let Some(codec) = self.open.borrow().get(&number) {
            let mut input = lock(&codec.input);
            input.bytes = Cursor::new(bytes);
            input.is_whole |= is_last;
        }
    }

    /// Returns the next step of a stream's output; nothing if it wants input, or is at its end.
    fn step(&self, number: u32) -> Result<Vec<u8>, Refusal> {
        let mut open = self.open.borrow_mut();
        let Some(codec) = open.get_mut(&number) else { return Ok(Vec::new()) };
        if !codec.header.is_empty() {
            return Ok(std::mem::take(&mut codec.header));
        }
        let mut output = vec![0; STEP];
        match codec.output.read(&mut output) {
            Ok(count) => {
                output.truncate(count);
                Ok(output)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Vec::new()),
            Err(error) => Err(refusal(&error)),
        }
    }
}

pub(super) fn install<'js>(group: &Object<'js>, state: &Rc<State>) -> rquickjs::Result<()> {
    let method =
        |ctx: &Ctx<'js>, text: &Text| Method::read(&text.0).map_err(|why| throw(ctx, "ERR_INVALID_ARG_VALUE", &why));
    let refused = |ctx: &Ctx<'js>, refusal: &Refusal| throw(ctx, refusal.code, &refusal.text);
    let here = state.clone();
    group.set(
        "whole",
        Func::from(move |ctx: Ctx<'js>, how: Text, data: Packed| {
            let how = method(&ctx, &how)?;
            let output = here.block(|| how.whole(data.0)).map_err(|refusal| refused(&ctx, &refusal))?;
            TypedArray::<u8>::new(ctx, output)
        }),
    )?;
    let here = state.clone();
    group.set(
        "later",
        Func::from(move |ctx: Ctx<'js>, op: f64, how: Text, data: Packed| {
            let (how, data) = (method(&ctx, &how)?, data.0);
            let work = move || how.whole(data).map(Payload::Bytes).map_err(|refusal| refusal.encoded());
            here.pool.run(op as u64, work);
            Ok::<(), rquickjs::Error>(())
        }),
    )?;
    let here = state.clone();
    group.set(
        "open",
        Func::from(move |ctx: Ctx<'js>, number: u32, how: Text| {
            let how = method(&ctx, &how)?;
            here.codecs.open(number, &how).map_err(|refusal| refused(&ctx, &refusal))
        }),
    )?;
    let here = state.clone();
    group.set(
        "give",
        Func::from(move |number: u32, data: Packed, is_last: bool| {
            here.codecs.give(number, data.0, is_last);
        }),
    )?;
    let here = state.clone();
    group.set(
        "step",
        Func::from(move |ctx: Ctx<'js>, number: u32| {
            let output = here.codecs.step(number).map_err(|refusal| refused(&ctx, &refusal))?;
            TypedArray::<u8>::new(ctx, output)
        }),
    )?;
    let here = state.clone();
    group.set("close", Func::from(move |number: u32| drop(here.codecs.open.borrow_mut().remove(&number))))?;
    group.set(
        "crc32",
        Func::from(move |data: Packed, start: u32| {
            let mut sum = crc32fast::Hasher::new_with_initial(start);
            sum.update(&data.0);
            sum.finalize()
        }),
    )
}
