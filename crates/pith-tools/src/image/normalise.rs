//! Converts an image to what providers accept inline.

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, GenericImageView, ImageDecoder, ImageReader, RgbImage};
use pith_protocol::ImageBlock;

use super::sniff::{ImageKind, Sniffed, sniff};
use crate::truncate::size;

/// Larger files are not decoded.
pub(crate) const MAX_INPUT: usize = 50 << 20;
const MAX_PIXELS: u64 = 100_000_000;
/// The first one competes with PNG; the others are for pictures of which neither is small enough.
const JPEG_QUALITIES: [u8; 5] = [80, 85, 70, 55, 40];

const NOT_CONVERTIBLE: &str = "[Image omitted: could not be converted to a supported inline image format.]";
const NOT_RESIZABLE: &str = "[Image omitted: could not be resized below the inline image size limit.]";

/// How large an inline image may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub width: u32,
    pub height: u32,
    /// The base64 form must be smaller than this.
    pub base64_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { width: 2000, height: 2000, base64_bytes: 4_718_592 }
    }
}

/// How images are converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// If false, only types that providers do not accept are converted.
    pub auto_resize: bool,
    pub limits: Limits,
}

/// The result of converting an image.
#[derive(Clone, Debug, PartialEq)]
pub enum Normalised {
    /// The image, possibly converted, with notes for the model.
    Image { block: ImageBlock, notes: Vec<String> },
    /// No image; the note replaces it.
    Omitted(String),
}

/// Returns whether an inline image can be passed on unchanged. Reads only the header.
pub fn is_ordinary(block: &ImageBlock, rules: Rules) -> bool {
    if block.data.len() >= rules.limits.base64_bytes {
        return false;
    }
    let Some(data) = decoded(&block.data) else { return false };
    match sniff(&data) {
        Sniffed::Image(kind) => kind.mime() == block.mime_type && is_acceptable(kind, &data, rules),
        Sniffed::Unsupported(_) | Sniffed::Other => false,
    }
}

/// Like [`normalise`], for an image that is inline already.
pub fn normalise_block(block: ImageBlock, rules: Rules) -> Normalised {
    if is_ordinary(&block, rules) {
        return Normalised::Image { block, notes: Vec::new() };
    }
    // A type that needs no conversion can only fail when it is resized.
    let failure = if rules.auto_resize && is_inline(&block.mime_type) { NOT_RESIZABLE } else { NOT_CONVERTIBLE };
    match decoded(&block.data) {
        Some(data) => normalise_or(&data, rules, failure),
        None => Normalised::Omitted(failure.to_owned()),
    }
}

/// Makes an inline image from a file's bytes, converted and resized as needed.
pub fn normalise(data: &[u8], rules: Rules) -> Normalised {
    let needs_no_conversion = matches!(sniff(data), Sniffed::Image(kind) if kind.is_inline());
    normalise_or(data, rules, if needs_no_conversion { NOT_RESIZABLE } else { NOT_CONVERTIBLE })
}

/// Like [`normalise`], with the note to use if the image is unusable.
fn normalise_or(data: &[u8], rules: Rules, failure: &str) -> Normalised {
    let Sniffed::Image(kind) = sniff(data) else { return Normalised::Omitted(failure.to_owned()) };
    if data.len() > MAX_INPUT {
        return Normalised::Omitted(format!("[Image omitted: {} exceeds the limit of 50MB.]", size(data.len())));
    }
    if is_acceptable(kind, data, rules) {
        return unchanged(kind, data);
    }
    match open(kind, data) {
        Err(DecodeError::TooManyPixels(width, height)) => {
            Normalised::Omitted(format!("[Image omitted: {width}x{height} exceeds the limit of 100 megapixels.]"))
        }
        Err(DecodeError::Broken) => Normalised::Omitted(failure.to_owned()),
        Ok(image) => convert(kind, data, &image, rules).unwrap_or_else(|| Normalised::Omitted(failure.to_owned())),
    }
}

/// Whether an image of this declared type needs no conversion.
fn is_inline(mime: &str) -> bool {
    let mime = mime.split_once(';').map_or(mime, |(mime, _)| mime).trim();
    let known = ["image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"];
    known.iter().any(|known| mime.eq_ignore_ascii_case(known))
}

/// Whether the bytes can be passed on, as far as the header tells.
fn is_acceptable(kind: ImageKind, data: &[u8], rules: Rules) -> bool {
    if !kind.is_inline() || !rules.auto_resize {
        return kind.is_inline();
    }
    kind.is_complete(data)
        && base64_size(data.len()) < rules.limits.base64_bytes
        && header(kind, data).is_some_and(|(width, height)| fits(width, height, rules.limits))
}

/// The size of the image after its orientation is applied.
fn header(kind: ImageKind, data: &[u8]) -> Option<(u32, u32)> {
    let mut decoder = ImageReader::with_format(Cursor::new(data), kind.format()).into_decoder().ok()?;
    let (width, height) = decoder.dimensions();
    Some(if swaps_sides(decoder.orientation().ok()?) { (height, width) } else { (width, height) })
}

fn swaps_sides(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH
    )
}

fn fits(width: u32, height: u32, limits: Limits) -> bool {
    width <= limits.width && height <= limits.height
}

enum DecodeError {
    TooManyPixels(u32, u32),
    Broken,
}

/// Decodes and rotates the image; its size is checked before any pixel is decoded.
fn open(kind: ImageKind, data: &[u8]) -> Result<DynamicImage, DecodeError> {
    let reader = ImageReader::with_format(Cursor::new(data), kind.format());
    let mut decoder = reader.into_decoder().map_err(|_| DecodeError::Broken)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(DecodeError::TooManyPixels(width, height));
    }
    decoder.set_limits(image::Limits::default()).map_err(|_| DecodeError::Broken)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder).map_err(|_| DecodeError::Broken)?;
    image.apply_orientation(orientation);
    Ok(image)
}

fn convert(kind: ImageKind, data: &[u8], image: &DynamicImage, rules: Rules) -> Option<Normalised> {
    let limits = rules.limits;
    let (width, height) = image.dimensions();
    let small = fits(width, height, limits) || !rules.auto_resize;
    if kind.is_inline() && small && base64_size(data.len()) < limits.base64_bytes {
        // The header was in doubt, but the image is valid.
        return Some(unchanged(kind, data));
    }
    let as_png = (!kind.is_inline() && small).then(|| encoded_png(image)).flatten();
    let as_png = as_png.filter(|png| !rules.auto_resize || base64_size(png.len()) < limits.base64_bytes);
    let (bytes, mime, resized) = match as_png {
        Some(png) => (png, ImageKind::Png.mime(), None),
        None => {
            let (bytes, kind, shown) = shrink(image, limits)?;
            (bytes, kind.mime(), Some(shown))
        }
    };
    let mut notes = Vec::new();
    if !kind.is_inline() {
        notes.push(format!("[Image converted from {} to {mime}.]", kind.mime()));
    }
    if let Some((shown_width, shown_height)) = resized {
        let factor = f64::from(width) / f64::from(shown_width);
        notes.push(format!(
            "[Image: original {width}x{height}, displayed at {shown_width}x{shown_height}. \
             Multiply coordinates by {factor:.2} to map to original image.]"
        ));
    }
    let block = ImageBlock { data: STANDARD.encode(bytes), mime_type: mime.to_owned() };
    Some(Normalised::Image { block, notes })
}

/// Scales down until an encoding is small enough: the smaller one of PNG and JPEG, or else a coarser JPEG.
fn shrink(image: &DynamicImage, limits: Limits) -> Option<(Vec<u8>, ImageKind, (u32, u32))> {
    let (mut width, mut height) = fitted(image.dimensions(), limits);
    loop {
        let scaled =
            (image.dimensions() != (width, height)).then(|| image.resize_exact(width, height, FilterType::Lanczos3));
        let candidate = scaled.as_ref().unwrap_or(image);
        let png = encoded_png(candidate).map(|png| (png, ImageKind::Png));
        let flat = flattened(candidate);
        let mut jpegs =
            JPEG_QUALITIES.iter().filter_map(|quality| Some((encoded_jpeg(&flat, *quality)?, ImageKind::Jpeg)));
        let smaller = png.into_iter().chain(jpegs.next()).min_by_key(|(bytes, _)| bytes.len());
        let first = smaller.into_iter().chain(jpegs).find(|(bytes, _)| base64_size(bytes.len()) < limits.base64_bytes);
        if let Some((bytes, kind)) = first {
            return Some((bytes, kind, (width, height)));
        }
        if (width, height) == (1, 1) {
            return None;
        }
        (width, height) = ((width * 3 / 4).max(1), (height * 3 / 4).max(1));
    }
}

fn fitted((mut width, mut height): (u32, u32), limits: Limits) -> (u32, u32) {
    let scaled =
        |side: u32, new: u32, old: u32| (f64::from(side) * f64::from(new) / f64::from(old)).round().max(1.0) as u32;
    if width > limits.width {
        (width, height) = (limits.width, scaled(height, limits.width, width));
    }
    if height > limits.height {
        (width, height) = (scaled(width, limits.height, height), limits.height);
    }
    (width, height)
}

fn encoded_png(image: &DynamicImage) -> Option<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    // The encoder accepts every pixel format but floats.
    match image {
        DynamicImage::ImageRgb32F(_) | DynamicImage::ImageRgba32F(_) => {
            image.to_rgba8().write_to(&mut bytes, image::ImageFormat::Png).ok()?;
        }
        _ => image.write_to(&mut bytes, image::ImageFormat::Png).ok()?,
    }
    Some(bytes.into_inner())
}

fn encoded_jpeg(image: &RgbImage, quality: u8) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(image).ok()?;
    Some(bytes)
}

/// Draws the image on white, because JPEG has no transparency.
fn flattened(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let mut flat = RgbImage::new(image.width(), image.height());
    for (from, to) in image.to_rgba8().pixels().zip(flat.pixels_mut()) {
        let [red, green, blue, alpha] = from.0.map(u32::from);
        to.0 = [red, green, blue].map(|colour| ((colour * alpha + 255 * (255 - alpha)) / 255) as u8);
    }
    flat
}

fn unchanged(kind: ImageKind, data: &[u8]) -> Normalised {
    let block = ImageBlock { data: STANDARD.encode(data), mime_type: kind.mime().to_owned() };
    Normalised::Image { block, notes: Vec::new() }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text.trim_end_matches('='))).ok()
}

fn base64_size(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

#[cfg(test)]
mod tests;
