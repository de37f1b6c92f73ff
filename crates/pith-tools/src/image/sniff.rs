//! Recognises images by their first bytes.

/// How many bytes of a file [`sniff`] needs.
pub(crate) const SNIFFED: usize = 4100;

/// Image types pith can decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    Png,
    Jpeg,
    Gif,
    Webp,
    Bmp,
}

/// What the first bytes of a file show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sniffed {
    Image(ImageKind),
    /// An image type that models cannot be shown; its MIME type.
    Unsupported(&'static str),
    Other,
}

impl ImageKind {
    /// The MIME type.
    pub fn mime(self) -> &'static str {
        match self {
            ImageKind::Png => "image/png",
            ImageKind::Jpeg => "image/jpeg",
            ImageKind::Gif => "image/gif",
            ImageKind::Webp => "image/webp",
            ImageKind::Bmp => "image/bmp",
        }
    }

    /// Whether providers accept it unchanged.
    pub fn is_inline(self) -> bool {
        self != ImageKind::Bmp
    }

    pub(super) fn format(self) -> image::ImageFormat {
        match self {
            ImageKind::Png => image::ImageFormat::Png,
            ImageKind::Jpeg => image::ImageFormat::Jpeg,
            ImageKind::Gif => image::ImageFormat::Gif,
            ImageKind::Webp => image::ImageFormat::WebP,
            ImageKind::Bmp => image::ImageFormat::Bmp,
        }
    }

    /// Whether the data ends as this format does; providers refuse truncated images.
    pub(super) fn is_complete(self, data: &[u8]) -> bool {
        match self {
            ImageKind::Png => data.ends_with(b"IEND\xaeB`\x82"),
            ImageKind::Jpeg => data.ends_with(b"\xff\xd9"),
            ImageKind::Gif => data.ends_with(b";"),
            ImageKind::Webp => little_endian(data, 4).is_some_and(|size| size as usize + 8 <= data.len()),
            ImageKind::Bmp => true,
        }
    }
}

/// Recognises `head`, the beginning of a file.
pub fn sniff(head: &[u8]) -> Sniffed {
    let head = &head[..head.len().min(SNIFFED)];
    match head {
        [0xff, 0xd8, 0xff, 0xf7, ..] => Sniffed::Other,
        [0xff, 0xd8, 0xff, ..] => Sniffed::Image(ImageKind::Jpeg),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Sniffed::Image(ImageKind::Gif),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Sniffed::Image(ImageKind::Webp),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', chunks @ ..] => png(chunks),
        [b'B', b'M', ..] if is_bitmap(head) => Sniffed::Image(ImageKind::Bmp),
        [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] => media(brand),
        _ if is_svg(head) => Sniffed::Unsupported("image/svg+xml"),
        _ => Sniffed::Other,
    }
}

/// Checks the chunks: an `acTL` before the first `IDAT` makes it an animation.
fn png(mut chunks: &[u8]) -> Sniffed {
    if chunks.get(4..8) != Some(b"IHDR") {
        return Sniffed::Other;
    }
    while let [a, b, c, d, n1, n2, n3, n4, rest @ ..] = chunks {
        match [*n1, *n2, *n3, *n4].as_slice() {
            b"acTL" => return Sniffed::Unsupported("image/apng"),
            b"IDAT" => break,
            _ => {}
        }
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        // Contents and checksum follow the name.
        chunks = rest.get(length.saturating_add(4)..).unwrap_or_default();
    }
    Sniffed::Image(ImageKind::Png)
}

/// The two letters are common in text; sizes, planes and depth must be valid as well.
fn is_bitmap(head: &[u8]) -> bool {
    let short = |at: usize| head.get(at..at + 2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    let Some(header) = little_endian(head, 14) else { return false };
    let (planes, depth) = if header == 12 { (short(22), short(24)) } else { (short(26), short(28)) };
    matches!(header, 12 | 40 | 52 | 56 | 64 | 108 | 124)
        && planes == Some(1)
        && matches!(depth, Some(1 | 2 | 4 | 8 | 16 | 24 | 32))
}

fn media(brand: &[u8]) -> Sniffed {
    match brand.get(..4) {
        Some(b"avif" | b"avis") => Sniffed::Unsupported("image/avif"),
        Some(b"heic" | b"heix" | b"mif1") => Sniffed::Unsupported("image/heic"),
        _ => Sniffed::Other,
    }
}

/// Whether an `svg` element follows, after a prologue at most.
fn is_svg(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let mut rest = head.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = match rest {
            _ if rest.starts_with("<?") => "?>",
            _ if rest.starts_with("<!--") => "-->",
            _ if rest.starts_with("<!") => ">",
            _ => {
                return rest
                    .strip_prefix("<svg")
                    .is_some_and(|rest| rest.starts_with([' ', '\t', '\r', '\n', '>', '/']));
            }
        };
        let Some((_, after)) = rest.split_once(end) else { return false };
        rest = after.trim_start();
    }
}

fn little_endian(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(name: &[u8; 4], length: usize) -> Vec<u8> {
        [&(length as u32).to_be_bytes(), name.as_slice(), &vec![0; length + 4]].concat()
    }

    fn png_of(chunks: &[Vec<u8>]) -> Vec<u8> {
        [b"\x89PNG\r\n\x1a\n".as_slice(), &chunks.concat()].concat()
    }

    #[test]
    fn types_are_told_by_content() {
        let bitmap = [b"BM".as_slice(), &[0; 12], &40u32.to_le_bytes(), &[0; 8], &[1, 0, 24, 0]].concat();
        let cases: &[(&[u8], Sniffed)] = &[
            (b"\xff\xd8\xff\xe0", Sniffed::Image(ImageKind::Jpeg)),
            (b"\xff\xd8\xff\xf7", Sniffed::Other),
            (b"GIF89a..", Sniffed::Image(ImageKind::Gif)),
            (b"GIF88a..", Sniffed::Other),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Sniffed::Image(ImageKind::Webp)),
            (b"RIFF\x10\0\0\0WAVE", Sniffed::Other),
            (&png_of(&[chunk(b"IHDR", 13), chunk(b"IDAT", 5)]), Sniffed::Image(ImageKind::Png)),
            (&png_of(&[chunk(b"IHDR", 13), chunk(b"acTL", 8)]), Sniffed::Unsupported("image/apng")),
            (&png_of(&[chunk(b"IHDR", 13), chunk(b"IDAT", 5), chunk(b"acTL", 8)]), Sniffed::Image(ImageKind::Png)),
            (&png_of(&[chunk(b"XXXX", 13)]), Sniffed::Other),
            (&bitmap, Sniffed::Image(ImageKind::Bmp)),
            (b"BM is how this sentence starts, and it goes on", Sniffed::Other),
            (b"\0\0\0\x20ftypavif", Sniffed::Unsupported("image/avif")),
            (b"<svg/>", Sniffed::Unsupported("image/svg+xml")),
            (
                b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- a -->\n<!DOCTYPE svg>\n<svg >",
                Sniffed::Unsupported("image/svg+xml"),
            ),
            (b"<svgx>", Sniffed::Other),
            (b"<html><svg>", Sniffed::Other),
            (b"", Sniffed::Other),
        ];
        for (head, expected) in cases {
            assert_eq!(sniff(head), *expected, "{:?}", String::from_utf8_lossy(head));
        }
    }
}
