//! Properties of single formats: their values, their precision and their limits.

use super::*;

#[test]
fn alpha_stays_straight_through_exr() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.exr");
    let data = vec![0.5, 0.25, 1.0, 0.5, 3.0, 2.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0];
    let image = Image {
        width: 3,
        height: 1,
        channels: 4,
        data,
    };
    image::write_exr(&path, &image).expect("writable");
    assert_eq!(image::read(&path).expect("readable").0, image);
}

#[test]
fn palettes_and_their_transparency_are_expanded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("misnamed.exr");
    fs::write(&path, PALETTE_PNG).expect("writable");
    let (image, encoding) = image::read(&path).expect("told by its content");
    assert_eq!(
        (image.width, image.height, image.channels, encoding),
        (3, 2, 4, Encoding::Srgb)
    );
    let half = 128.0 / 255.0;
    assert_eq!(image.data[..8], [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, half]);
    assert_eq!(image.data[8..12], [0.2, 0.4, 1.0, 0.0]);
    assert_eq!(image.data[12..16], [0.2, 0.4, 1.0, 0.0]);
}

/// Pictures in colours, with alpha and in grey that the crate `image` has written are read with the same values.
#[test]
fn bmp_and_tga_are_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let coded = |bytes: &[u8]| bytes.iter().map(|v| f32::from(*v) / 255.0).collect::<Vec<f32>>();
    // Two rows, of which both formats write the lower one first.
    let rgb = [255, 0, 0, 1, 2, 3, 0, 255, 51, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    let rgba = [255, 0, 0, 9, 1, 2, 3, 255, 0, 255, 51, 0, 4, 5, 6, 128];
    let grey = [0, 51, 255, 1, 2, 3];
    for extension in ["bmp", "tga", "TGA"] {
        let path = folder.path().join(format!("picture.{extension}"));
        let read = || {
            let header = image::header(&path).expect("a header");
            let (image, encoding) = image::read(&path).expect("an image");
            assert_eq!(encoding, Encoding::Srgb);
            assert_eq!(
                (header.width, header.height, header.channels),
                (image.width, image.height, image.channels)
            );
            ((image.width, image.height, image.channels), image.data)
        };
        let buffer = ::image::RgbImage::from_raw(3, 2, rgb.to_vec()).expect("six pixels");
        buffer.save(&path).expect("writable");
        assert_eq!(read(), ((3, 2, 3), coded(&rgb)));
        let buffer = ::image::RgbaImage::from_raw(2, 2, rgba.to_vec()).expect("four pixels");
        buffer.save(&path).expect("writable");
        assert_eq!(read(), ((2, 2, 4), coded(&rgba)));
        let buffer = ::image::GrayImage::from_raw(3, 2, grey.to_vec()).expect("six pixels");
        buffer.save(&path).expect("writable");
        let ((width, height, channels), data) = read();
        assert_eq!((width, height), (3, 2));
        // A grey BMP has a palette, whose entries are colours.
        let first: Vec<f32> = data.chunks_exact(channels).map(|texel| texel[0]).collect();
        assert_eq!(first, coded(&grey));
    }
    // A TGA is known by its name alone, any other format by its content.
    let (tga, other) = (folder.path().join("picture.tga"), folder.path().join("picture.dat"));
    fs::copy(&tga, &other).expect("writable");
    let told = image::read(&other).expect_err("without a name").to_string();
    assert!(
        told.contains("is not an image by its content, expected EXR, HDR, PNG, JPEG, BMP, or TGA"),
        "{told}"
    );
    fs::copy(folder.path().join("picture.bmp"), &tga).expect("writable");
    assert!(image::read(&tga).is_ok());
}

/// Radiance files of both signatures, a pixel of mantissas 128, 64, 32 over 256 times four.
#[test]
fn hdr_of_either_signature_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.hdr");
    for signature in ["RADIANCE", "RGBE"] {
        let mut bytes = format!("#?{signature}\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n").into_bytes();
        bytes.extend([128, 64, 32, 130]);
        fs::write(&path, bytes).expect("writable");
        let (found, _) = image::read(&path).unwrap_or_else(|e| panic!("{signature}: {e}"));
        assert_eq!(found.data, [2.0, 1.0, 0.5], "{signature}");
    }
}

#[test]
fn sixteen_bits_are_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.png");
    let buffer = ::image::ImageBuffer::<::image::Luma<u16>, _>::from_raw(2, 1, vec![1u16, 65535]).expect("two pixels");
    buffer.save(&path).expect("writable");
    let (image, _) = image::read(&path).expect("readable");
    assert_eq!((image.channels, image.data), (1, vec![1.0 / 65535.0, 1.0]));
}

/// The files are well formed, or padded to a length that any of their pixels could be packed into, so that only the
/// header tells how much memory they ask for.
#[test]
fn images_that_ask_for_too_much_memory_are_refused_by_their_headers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let refusal = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("writable");
        let header = image::header(&path).expect_err("too large").to_string();
        assert_eq!(header, image::read(&path).expect_err("too large").to_string());
        header
    };
    // One bit a pixel, all zero: 66 KB that unfold to a gibibyte of floats.
    let told = refusal(
        "bits.png",
        &flat_png(16384, 16384, png::BitDepth::One, png::ColorType::Grayscale),
    );
    assert!(
        told.contains("bits.png: claims 16384×16384 pixels") && told.contains("1024 MiB"),
        "{told}"
    );
    assert!(told.contains("the limit of 260 MiB for a file of"), "{told}");
    // Sixteen bits, four channels.
    let mut bytes = flat_png(8, 8, png::BitDepth::Sixteen, png::ColorType::Rgba);
    claim_png_size(&mut bytes, [5000, 4000]);
    bytes.resize(33_000, 0);
    let told = refusal("sixteen.png", &bytes);
    assert!(told.contains("5000×4000") && told.contains("306 MiB"), "{told}");
    // This limit holds however long the file is.
    let mut bytes = flat_png(8, 8, png::BitDepth::Eight, png::ColorType::Rgb);
    claim_png_size(&mut bytes, [16384, 16384]);
    bytes.resize(2_000_000, 0);
    let told = refusal("long.png", &bytes);
    assert!(
        told.contains("3072 MiB") && told.contains("more than the limit of 2048 MiB"),
        "{told}"
    );

    let path = folder.path().join("a.jpg");
    write_rgb(&path);
    let mut bytes = fs::read(&path).expect("there");
    let frame = bytes
        .windows(2)
        .position(|w| w == [0xff, 0xc0])
        .expect("a baseline frame");
    bytes[frame + 5..frame + 9].copy_from_slice(&[0x20, 0, 0x20, 0]);
    bytes.resize(33_000, 0);
    let told = refusal("a.jpg", &bytes);
    assert!(told.contains("8192×8192") && told.contains("768 MiB"), "{told}");

    let path = folder.path().join("a.bmp");
    write_rgb(&path);
    let mut bytes = fs::read(&path).expect("there");
    bytes[18..26].copy_from_slice(&[0, 0x20, 0, 0, 0, 0x20, 0, 0]);
    bytes.resize(33_000, 0);
    let told = refusal("a.bmp", &bytes);
    assert!(told.contains("8192×8192") && told.contains("768 MiB"), "{told}");

    let path = folder.path().join("a.tga");
    write_rgb(&path);
    let mut bytes = fs::read(&path).expect("there");
    bytes[12..16].copy_from_slice(&[0, 0x20, 0, 0x20]);
    bytes.resize(33_000, 0);
    let told = refusal("a.tga", &bytes);
    assert!(told.contains("8192×8192") && told.contains("768 MiB"), "{told}");

    let path = folder.path().join("a.exr");
    image::write_exr(&path, &picture(3)).expect("writable");
    let mut bytes = fs::read(&path).expect("there");
    for window in [&b"dataWindow\0box2i\0"[..], b"displayWindow\0box2i\0"] {
        let at = bytes.windows(window.len()).position(|w| w == window).expect("a header");
        let corner = at + window.len() + 4 + 8;
        bytes[corner..corner + 8].copy_from_slice(&[0xff, 0x1f, 0, 0, 0xff, 0x1f, 0, 0]);
    }
    bytes.resize(33_000, 0);
    let told = refusal("a.exr", &bytes);
    assert!(told.contains("8192×8192") && told.contains("768 MiB"), "{told}");
}

/// Flat pictures of usual sizes compress to almost nothing, and are no attack.
#[test]
fn flat_pictures_are_read_however_short_their_files_are() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("mask.png");
    let bytes = flat_png(4096, 2048, png::BitDepth::One, png::ColorType::Grayscale);
    assert!(bytes.len() < 4096, "{}", bytes.len());
    fs::write(&path, bytes).expect("writable");
    let (image, _) = image::read(&path).expect("readable");
    assert_eq!((image.width, image.height, image.channels), (4096, 2048, 1));
}

/// A PNG of zeros.
fn flat_png(width: u32, height: u32, depth: png::BitDepth, color: png::ColorType) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    encoder.set_compression(png::Compression::High);
    let bits = width as usize * color.samples() * depth as usize;
    let mut writer = encoder.write_header().expect("memory");
    let zeros = vec![0; bits.div_ceil(8) * height as usize];
    writer.write_image_data(&zeros).expect("memory");
    writer.finish().expect("memory");
    bytes
}

/// Writes another size into the header of a PNG, and the check sum that goes with it.
fn claim_png_size(bytes: &mut [u8], [width, height]: [u32; 2]) {
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&crc.sum().to_be_bytes());
}

#[test]
fn png_is_clamped_and_rounded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.png");
    let data = vec![-1.0, 0.5, 2.0];
    image::write_png(
        &path,
        &Image {
            width: 1,
            height: 1,
            channels: 3,
            data,
        },
    )
    .expect("writable");
    assert_eq!(image::read(&path).expect("readable").0.data, [0.0, 128.0 / 255.0, 1.0]);
}

#[test]
fn numpy_of_either_endianness_and_precision_is_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.npy");
    let write = |dtype: &str, order: &str, payload: &[u8]| {
        let mut text = format!("{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': (1, 1, 2), }}");
        text.extend(std::iter::repeat_n(' ', 117 - text.len()));
        let bytes = [b"\x93NUMPY\x01\x00\x76\x00", text.as_bytes(), b"\n", payload].concat();
        fs::write(&path, bytes).expect("writable");
    };
    let values = [1.5f64, -0.25];
    for (dtype, payload) in [
        (">f8", values.map(f64::to_be_bytes).concat()),
        ("<f8", values.map(f64::to_le_bytes).concat()),
        (">f4", values.map(|v| (v as f32).to_be_bytes()).concat()),
    ] {
        write(dtype, "False", &payload);
        let grid = npy::read(&path).expect("readable");
        assert_eq!(
            (grid.size, grid.channels, grid.data),
            ([2, 1, 1], 1, vec![1.5, -0.25]),
            "{dtype}"
        );
    }
    write("<i8", "False", &[0; 16]);
    assert!(npy::read(&path).expect_err("integers").to_string().contains("<i8"));
    write("<f4", "True", &[0; 8]);
    assert!(npy::read(&path).expect_err("order").to_string().contains("Fortran"));
    write("<f4", "False", &f32::NAN.to_le_bytes().repeat(2));
    assert!(npy::read(&path).expect_err("NaN").to_string().contains("NaN"));
}

#[test]
fn tensors_come_back_with_their_text() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.safetensors");
    write_tensors(&path);
    let mut reader = tensors::Reader::open(&path).expect("readable");
    assert_eq!(reader.names(), ["values", "state"]);
    assert_eq!(reader.shape("values"), Some(&[2, 2][..]));
    assert_eq!(reader.f32("values").expect("there"), [1.0, -2.0, 3.5, 0.0]);
    assert_eq!(reader.u64("state").expect("there"), [1, u64::MAX, 3]);
    assert_eq!(reader.text("note"), Some("text"));
    assert!(
        reader
            .u64("values")
            .expect_err("of another type")
            .to_string()
            .contains("`values` is of type F32")
    );
    assert!(
        reader
            .f32("none")
            .expect_err("not there")
            .to_string()
            .contains("`none`")
    );
}
