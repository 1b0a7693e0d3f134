//! sRGB (IEC 61966-2-1): its transfer function, without approximation, and its primaries.

use super::Image;

/// Rows: red, green and blue of the primaries, by X, Y and Z.
const XYZ_TO_RGB: [[f64; 3]; 3] = [
    [3.240479, -1.537150, -0.498535],
    [-0.969256, 1.875991, 0.041556],
    [0.055648, -0.204043, 1.057311],
];

/// A colour of the CIE 1931 observer, X, Y and Z, as linear red, green and blue.
pub fn from_xyz(xyz: [f64; 3]) -> [f64; 3] {
    XYZ_TO_RGB.map(|row| (0..3).map(|axis| row[axis] * xyz[axis]).sum())
}

/// Linear light to a coded value. Negative values continue the linear segment.
pub fn encode(linear: f32) -> f32 {
    if linear <= 0.003_130_8 {
        12.92 * linear
    } else {
        1.055 * linear.powf(1.0 / 2.4) - 0.055
    }
}

/// Coded value to linear light; the inverse of [`encode`].
pub fn decode(coded: f32) -> f32 {
    if coded <= 0.040_45 {
        coded / 12.92
    } else {
        ((coded + 0.055) / 1.055).powf(2.4)
    }
}

/// Codes the colours of a linear image in place; alpha stays.
pub fn encode_image(image: &mut Image) {
    map_colors(image, encode);
}

/// Decodes the colours of a coded image in place; alpha stays.
pub fn decode_image(image: &mut Image) {
    map_colors(image, decode);
}

fn map_colors(image: &mut Image, f: impl Fn(f32) -> f32) {
    let colors = image.channels.min(3);
    for texel in image.data.chunks_exact_mut(image.channels.max(1)) {
        for v in &mut texel[..colors] {
            *v = f(*v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        for (linear, coded) in [
            (0.0, 0.0),
            (1.0, 1.0),
            (0.5, 0.735_357),
            (0.214_041_14, 0.5),
            (0.001, 0.012_92),
        ] {
            assert!(
                (encode(linear) - coded).abs() < 1e-6,
                "encode({linear}) = {}",
                encode(linear)
            );
        }
    }

    #[test]
    fn decode_inverts_encode() {
        for i in -10..=1000 {
            let x = i as f32 / 250.0;
            assert!((decode(encode(x)) - x).abs() <= 2e-6 * x.abs().max(1.0), "{x}");
        }
    }

    #[test]
    fn alpha_is_never_coded() {
        let mut image = Image {
            width: 1,
            height: 1,
            channels: 4,
            data: vec![0.5; 4],
        };
        encode_image(&mut image);
        assert_eq!(image.data[3], 0.5);
        assert!(image.data[0] > 0.7);
    }

    #[test]
    fn every_colour_is_coded_and_alpha_is_not() {
        for channels in [1, 3, 4] {
            let mut image = Image {
                width: 2,
                height: 1,
                channels,
                data: vec![0.5; 2 * channels],
            };
            decode_image(&mut image);
            for (i, v) in image.data.iter().enumerate() {
                let expected = if i % channels == 3 { 0.5 } else { decode(0.5) };
                assert_eq!(*v, expected, "value {i} of {channels} channels");
            }
        }
    }
}
