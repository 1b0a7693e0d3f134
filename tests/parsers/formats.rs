//! What single formats promise of their values.

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

#[test]
fn sixteen_bits_are_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.png");
    let buffer = ::image::ImageBuffer::<::image::Luma<u16>, _>::from_raw(2, 1, vec![1u16, 65535]).expect("two pixels");
    buffer.save(&path).expect("writable");
    let (image, _) = image::read(&path).expect("readable");
    assert_eq!((image.channels, image.data), (1, vec![1.0 / 65535.0, 1.0]));
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
