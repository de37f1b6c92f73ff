use super::*;
use image::{ExtendedColorType, ImageEncoder, ImageFormat, Rgba, RgbaImage};

const SMALL: Rules = Rules { auto_resize: true, limits: Limits { width: 20, height: 20, base64_bytes: 4000 } };

fn picture(width: u32, height: u32) -> RgbaImage {
    RgbaImage::from_fn(width, height, |x, y| Rgba([(x * 7) as u8, (y * 11) as u8, 40, 255]))
}

/// Pixels no encoder can shorten.
fn noise(width: u32, height: u32) -> RgbaImage {
    let mut state = 1u32;
    RgbaImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [a, b, c, _] = state.to_be_bytes();
        Rgba([a, b, c, 255])
    })
}

fn bytes(image: &RgbaImage, format: ImageFormat) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    DynamicImage::from(image.clone()).to_rgb8().write_to(&mut out, format).unwrap();
    out.into_inner()
}

fn shown(normalised: &Normalised) -> ((u32, u32), &str, Vec<&str>) {
    let Normalised::Image { block, notes } = normalised else { panic!("{normalised:?}") };
    let data = STANDARD.decode(&block.data).unwrap();
    let Sniffed::Image(kind) = sniff(&data) else { panic!("not an image") };
    assert_eq!(kind.mime(), block.mime_type);
    let size = image::load_from_memory(&data).unwrap().dimensions();
    (size, kind.mime(), notes.iter().map(String::as_str).collect())
}

#[test]
fn an_ordinary_image_keeps_its_bytes() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP] {
        let data = bytes(&picture(12, 8), format);
        let normalised = normalise(&data, SMALL);
        let Normalised::Image { block, notes } = &normalised else { panic!("{format:?}: {normalised:?}") };
        assert_eq!((STANDARD.decode(&block.data).unwrap(), notes.len()), (data, 0), "{format:?}");
        assert!(is_ordinary(block, SMALL), "{format:?}");
    }
}

#[test]
fn a_large_image_is_scaled_to_fit() {
    let check = |width, height, size: (u32, u32), factor: &str| {
        let normalised = normalise(&bytes(&picture(width, height), ImageFormat::Png), SMALL);
        let note = format!(
            "[Image: original {width}x{height}, displayed at {}x{}. Multiply coordinates by {factor} to map to \
             original image.]",
            size.0, size.1
        );
        assert_eq!(shown(&normalised), (size, "image/png", vec![note.as_str()]));
    };
    check(25, 10, (20, 8), "1.25");
    check(10, 41, (5, 20), "2.00");
    check(1000, 1, (20, 1), "50.00");
}

/// What a camera sees: soft colours with some grain.
fn photo(width: u32, height: u32) -> RgbaImage {
    let mut grain = noise(width, height);
    for (x, y, pixel) in grain.enumerate_pixels_mut() {
        let [red, green, blue, _] = pixel.0.map(|value| value / 16);
        pixel.0 = [(x / 2) as u8 + red, (y / 2) as u8 + green, 90 + blue, 255];
    }
    grain
}

#[test]
fn a_scaled_image_takes_the_smaller_encoding() {
    let rules = Rules { auto_resize: true, limits: Limits { width: 200, height: 200, ..Limits::default() } };
    for format in [ImageFormat::Png, ImageFormat::Bmp] {
        let normalised = normalise(&bytes(&photo(400, 300), format), rules);
        assert_eq!((shown(&normalised).0, shown(&normalised).1), ((200, 150), "image/jpeg"), "{format:?}");
        let lines = RgbaImage::from_fn(400, 300, |_, y| Rgba([0, if y % 8 == 0 { 0 } else { 255 }, 255, 255]));
        let normalised = normalise(&bytes(&lines, format), rules);
        assert_eq!((shown(&normalised).0, shown(&normalised).1), ((200, 150), "image/png"), "{format:?}");
    }
}

#[test]
fn too_many_bytes_lead_to_jpeg_then_to_fewer_pixels() {
    let rules = |base64_bytes| Rules { auto_resize: true, limits: Limits { width: 100, height: 100, base64_bytes } };
    let data = bytes(&noise(40, 40), ImageFormat::Png);
    assert!(base64_size(data.len()) > 4000);
    let (size, mime, notes) = {
        let normalised = normalise(&data, rules(4000));
        let (size, mime, notes) = shown(&normalised);
        (size, mime.to_owned(), notes.len())
    };
    assert_eq!((size, mime.as_str(), notes), ((40, 40), "image/jpeg", 1));
    let normalised = normalise(&data, rules(1200));
    assert!(shown(&normalised).0.0 < 40);
    assert_eq!(normalise(&data, rules(60)), Normalised::Omitted(NOT_RESIZABLE.to_owned()));
}

#[test]
fn bitmaps_are_converted() {
    let note = "[Image converted from image/bmp to image/png.]";
    let normalised = normalise(&bytes(&picture(12, 8), ImageFormat::Bmp), SMALL);
    assert_eq!(shown(&normalised), ((12, 8), "image/png", vec![note]));
    let off = Rules { auto_resize: false, ..SMALL };
    let large = normalise(&bytes(&picture(40, 8), ImageFormat::Bmp), off);
    assert_eq!(shown(&large), ((40, 8), "image/png", vec![note]));
    let resized = normalise(&bytes(&picture(40, 8), ImageFormat::Bmp), SMALL);
    assert_eq!((shown(&resized).0, shown(&resized).2.len()), ((20, 4), 2));
}

#[test]
fn broken_images_are_left_out() {
    let png = bytes(&picture(12, 8), ImageFormat::Png);
    assert_eq!(normalise(&png[..40], SMALL), Normalised::Omitted(NOT_RESIZABLE.to_owned()));
    let bitmap = bytes(&picture(12, 8), ImageFormat::Bmp);
    assert_eq!(normalise(&bitmap[..60], SMALL), Normalised::Omitted(NOT_CONVERTIBLE.to_owned()));
}

#[test]
fn a_broken_inline_image_fails_at_the_step_its_label_leads_to() {
    let off = Rules { auto_resize: false, ..SMALL };
    let bitmap = STANDARD.encode(&bytes(&picture(12, 8), ImageFormat::Bmp)[..60]);
    let check = |mime: &str, rules, expected: &str| {
        for data in ["", "!!", "aGVsbG8=", &bitmap] {
            let block = ImageBlock { data: data.to_owned(), mime_type: mime.to_owned() };
            assert_eq!(normalise_block(block, rules), Normalised::Omitted(expected.to_owned()), "{mime} {data:?}");
        }
    };
    for mime in ["image/png", "image/jpeg", "image/jpg", "image/gif", "Image/WebP; q=1"] {
        check(mime, SMALL, NOT_RESIZABLE);
        check(mime, off, NOT_CONVERTIBLE); // nothing was to be resized
    }
    check("image/bmp", SMALL, NOT_CONVERTIBLE);
    check("image/tiff", SMALL, NOT_CONVERTIBLE);
}

#[test]
fn a_jpeg_with_bytes_behind_its_end_is_still_passed_on() {
    let mut data = bytes(&picture(12, 8), ImageFormat::Jpeg);
    data.extend_from_slice(b"maker notes");
    let Normalised::Image { block, notes } = normalise(&data, SMALL) else { panic!("left out") };
    assert_eq!((STANDARD.decode(block.data).unwrap(), notes.len()), (data, 0));
}

#[test]
fn a_wrong_label_is_corrected() {
    let data = bytes(&picture(12, 8), ImageFormat::Jpeg);
    let block = ImageBlock { data: STANDARD.encode(&data), mime_type: "image/png".to_owned() };
    assert!(!is_ordinary(&block, SMALL));
    let Normalised::Image { block, .. } = normalise_block(block, SMALL) else { panic!("left out") };
    assert_eq!(block.mime_type, "image/jpeg");
}

#[test]
fn enormous_images_are_refused_from_their_header() {
    // 20 000 x 20 000 in the header, a few bytes of data.
    let mut data = bytes(&picture(2, 2), ImageFormat::Png);
    data[16..24].copy_from_slice(&[0, 0, 0x4e, 0x20, 0, 0, 0x4e, 0x20]);
    let checksum = crc(&data[12..29]);
    data[29..33].copy_from_slice(&checksum.to_be_bytes());
    let omitted = "[Image omitted: 20000x20000 exceeds the limit of 100 megapixels.]";
    assert_eq!(normalise(&data, SMALL), Normalised::Omitted(omitted.to_owned()));
    let mut heavy = bytes(&picture(2, 2), ImageFormat::Png);
    heavy.resize(MAX_INPUT + 1, 0);
    let omitted = "[Image omitted: 50.0MB exceeds the limit of 50MB.]";
    assert_eq!(normalise(&heavy, SMALL), Normalised::Omitted(omitted.to_owned()));
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

#[test]
fn orientation_counts_for_the_size() {
    // A minimal EXIF block: one entry, orientation 6 (turn right).
    let exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let image = DynamicImage::from(picture(30, 10)).to_rgb8();
    let mut data = Vec::new();
    let mut encoder = JpegEncoder::new(&mut data);
    encoder.set_exif_metadata(exif.to_vec()).unwrap();
    encoder.write_image(&image, 30, 10, ExtendedColorType::Rgb8).unwrap();
    let rules = Rules { auto_resize: true, limits: Limits { width: 10, height: 40, base64_bytes: 10_000 } };
    assert_eq!(header(ImageKind::Jpeg, &data), Some((10, 30)));
    assert!(matches!(normalise(&data, rules), Normalised::Image { notes, .. } if notes.is_empty()));
    let (size, ..) = {
        let normalised = normalise(&data, Rules { limits: Limits { height: 15, ..rules.limits }, ..rules });
        let (size, mime, _) = shown(&normalised);
        (size, mime.to_owned())
    };
    assert_eq!(size, (5, 15));
}
