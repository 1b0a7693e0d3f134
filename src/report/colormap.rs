//! Colour maps: all numbers that become display colours pass through here.
//!
//! Light is displayed by the sRGB curve, clamped to the display's range. Amounts are mapped to viridis and signed
//! amounts to blue–grey–red, in perceptually uniform steps (Oklab).

use colorgrad::{BlendMode, Gradient, GradientBuilder, LinearGradient, preset};

use crate::io::srgb;

/// A display colour: sRGB, 8 bit.
pub type Rgb = [u8; 3];

/// Blue, grey, red: equal lightness at both ends; zero is light grey.
const SIGNED: [&str; 5] = ["#053fb5", "#6f93dd", "#b9b9b9", "#e07a62", "#a3080c"];

/// Entries of a colour table.
pub const STEPS: usize = 256;

/// Colours for amounts, from low to high: viridis.
pub fn amounts() -> [Rgb; STEPS] {
    table(&preset::viridis())
}

/// Colours for signed amounts, from -1 to 1: blue, grey, red. Zero is at [`STEPS`] / 2.
pub fn signed() -> [Rgb; STEPS] {
    let gradient: LinearGradient = GradientBuilder::new()
        .html_colors(&SIGNED)
        .mode(BlendMode::Oklab)
        .build()
        .expect("the colours are well-formed");
    table(&gradient)
}

fn table(gradient: &impl Gradient) -> [Rgb; STEPS] {
    std::array::from_fn(|i| {
        // Entry `STEPS` / 2 is the middle of the gradient, so that zero has its own colour.
        let at = if i == STEPS / 2 {
            0.5
        } else {
            i as f32 / (STEPS - 1) as f32
        };
        let [r, g, b, _] = gradient.at(at).to_rgba8();
        [r, g, b]
    })
}

/// Index among [`STEPS`] colours of `value` in the range from `low` to `high`; NaN maps to the lowest.
pub fn step(value: f32, low: f32, high: f32) -> u8 {
    let span = high - low;
    let share = if span > 0.0 { (value - low) / span } else { 0.5 };
    (share.clamp(0.0, 1.0) * (STEPS - 1) as f32).round() as u8
}

/// Index in [`signed`] of `value`, whose range is ±`scale`.
pub fn signed_step(value: f32, scale: f32) -> u8 {
    let share = if scale > 0.0 {
        (value / scale).clamp(-1.0, 1.0)
    } else {
        0.0
    };
    (STEPS as f32 / 2.0 + share * (STEPS / 2 - 1) as f32).round() as u8
}

/// An sRGB-coded value in [0, 1] as a display byte.
pub fn coded_byte(value: f32) -> u8 {
    (value.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Linear light as a display byte.
pub fn light_byte(linear: f32) -> u8 {
    coded_byte(srgb::encode(linear))
}

/// Bytes of an 8-bit PNG: grey, RGB, or either with alpha.
///
/// # Panics
/// `bytes` are not so many, or the channels more than four.
pub fn png(width: usize, height: usize, channels: usize, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width as u32, height as u32);
    encoder.set_color(match channels {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::GrayscaleAlpha,
        3 => png::ColorType::Rgb,
        4 => png::ColorType::Rgba,
        _ => panic!("a PNG of {channels} channels"),
    });
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Balanced);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(bytes))
        .expect("memory takes all bytes, and their number is that of the pixels");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oklab lightness, by a different computation than the gradients'.
    fn lightness([r, g, b]: Rgb) -> f32 {
        let [r, g, b] = [r, g, b].map(|v| srgb::decode(f32::from(v) / 255.0));
        let l = (0.412_221_46 * r + 0.536_332_55 * g + 0.051_445_995 * b).cbrt();
        let m = (0.211_903_5 * r + 0.680_699_5 * g + 0.107_396_96 * b).cbrt();
        let s = (0.088_302_46 * r + 0.281_718_85 * g + 0.629_978_7 * b).cbrt();
        0.210_454_26 * l + 0.793_617_8 * m - 0.004_072_047 * s
    }

    #[test]
    fn amounts_grow_lighter_and_signed_ones_fall_from_grey() {
        let amounts = amounts().map(lightness);
        assert!(amounts.windows(2).all(|w| w[1] > w[0] - 3e-3), "{amounts:?}");
        assert!(amounts[STEPS - 1] - amounts[0] > 0.5);
        let signed = signed();
        let [r, g, b] = signed[STEPS / 2];
        assert!(r == g && g == b, "zero is grey");
        assert!(signed[0][2] > signed[0][0] && signed[STEPS - 1][0] > signed[STEPS - 1][2]);
        let light = signed.map(lightness);
        assert!(light[..STEPS / 2].windows(2).all(|w| w[1] > w[0] - 3e-3));
        assert!(light[STEPS / 2..].windows(2).all(|w| w[1] < w[0] + 3e-3));
        assert!((light[0] - light[STEPS - 1]).abs() < 0.06, "both ends are equally dark");
    }

    #[test]
    fn steps_reach_both_ends_and_zero_is_the_middle() {
        assert_eq!(
            (step(-1.0, -1.0, 3.0), step(3.0, -1.0, 3.0), step(9.0, -1.0, 3.0)),
            (0, 255, 255)
        );
        assert_eq!(step(2.0, 2.0, 2.0), 128, "one value everywhere is the middle");
        assert_eq!((signed_step(0.0, 2.0), signed_step(0.0, 0.0)), (128, 128));
        assert_eq!(
            (signed_step(2.0, 2.0), signed_step(-2.0, 2.0), signed_step(-9.0, 2.0)),
            (255, 1, 1)
        );
        assert_eq!(light_byte(0.5), 188);
    }

    #[test]
    fn pictures_come_back() {
        let bytes = png(2, 1, 3, &[1, 2, 3, 4, 5, 6]);
        let decoded = ::image::load_from_memory(&bytes).expect("a PNG").into_rgb8();
        assert_eq!(decoded.into_raw(), [1, 2, 3, 4, 5, 6]);
    }
}
