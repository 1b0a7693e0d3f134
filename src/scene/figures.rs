//! Pictures drawn from formulas: targets for scenes that shape light into a given picture.

/// A target picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The letter F, which no rotation and no reflection maps to itself.
    Letter,
    /// The digit 4, which has no such symmetry either.
    Digit,
    /// A ring around a triangle.
    Ring,
    /// Three discs, red, green and blue, that overlap.
    Discs,
}

/// The value of dark pixels: not 0, because some stray light reaches every pixel.
const DARK: f32 = 0.05;

impl Figure {
    /// All of them, by their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("letter", Self::Letter),
        ("digit", Self::Digit),
        ("ring", Self::Ring),
        ("discs", Self::Discs),
    ];

    /// Its name.
    pub fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, figure)| *figure == self);
        found.expect("all of them have names").0
    }

    /// The picture in this size, row by row, in linear light between 0.05 and 1. The shorter side is 2 units long, edges are a
    /// pixel wide.
    pub fn draw(self, [width, height]: [u32; 2]) -> Vec<[f32; 3]> {
        let unit = 2.0 / width.min(height) as f32;
        let pixel = |i: u32| {
            let [x, y] = [(i % width, width), (i / width, height)]
                .map(|(at, side)| (at as f32 + 0.5 - 0.5 * side as f32) * unit);
            // y upwards.
            let covered = self.distances([x, -y]).map(|d| (0.5 - d / unit).clamp(0.0, 1.0));
            covered.map(|c| DARK + (1.0 - DARK) * c)
        };
        (0..width * height).map(pixel).collect()
    }

    /// For each colour the distance to its shape's border, negative inside.
    fn distances(self, p: [f32; 2]) -> [f32; 3] {
        match self {
            Self::Letter => [letter(p); 3],
            Self::Digit => [digit(p); 3],
            Self::Ring => [ring(p); 3],
            Self::Discs => [90.0f32, 210.0, 330.0].map(|angle| {
                let (sin, cos) = angle.to_radians().sin_cos();
                (p[0] - 0.3 * cos).hypot(p[1] - 0.3 * sin) - 0.45
            }),
        }
    }
}

/// The distance to the segment from `a` to `b`.
fn segment([x, y]: [f32; 2], a: [f32; 2], b: [f32; 2]) -> f32 {
    let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
    let t = (((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy)).clamp(0.0, 1.0);
    (x - a[0] - t * dx).hypot(y - a[1] - t * dy)
}

/// An F.
fn letter(p: [f32; 2]) -> f32 {
    let stem = segment(p, [-0.3, -0.65], [-0.3, 0.65]);
    let top = segment(p, [-0.3, 0.65], [0.4, 0.65]);
    let middle = segment(p, [-0.3, 0.05], [0.2, 0.05]);
    stem.min(top).min(middle) - 0.12
}

/// A 4.
fn digit(p: [f32; 2]) -> f32 {
    let stem = segment(p, [0.2, -0.65], [0.2, 0.65]);
    let slope = segment(p, [0.2, 0.65], [-0.45, -0.25]);
    let bar = segment(p, [-0.45, -0.25], [0.45, -0.25]);
    stem.min(slope).min(bar) - 0.12
}

fn ring(p: [f32; 2]) -> f32 {
    let corner = |angle: f32| {
        let (sin, cos) = angle.to_radians().sin_cos();
        [0.45 * cos, 0.45 * sin]
    };
    let corners = [90.0, 210.0, 330.0].map(corner);
    let sides = (0..3).map(|i| segment(p, corners[i], corners[(i + 1) % 3]));
    let circle = (p[0].hypot(p[1]) - 0.75).abs();
    sides.fold(circle, f32::min) - 0.07
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The covered share of a picture does not depend on its size, and pixels inside and outside of shapes have their values.
    #[test]
    fn figures_look_alike_at_every_size() {
        let share = |figure: Figure, side: u32| {
            let drawn = figure.draw([side, side]);
            [0, 1, 2].map(|c| drawn.iter().map(|p| p[c]).sum::<f32>() / drawn.len() as f32)
        };
        for (_, figure) in Figure::ALL {
            let (small, large) = (share(figure, 64), share(figure, 256));
            for c in 0..3 {
                assert!((small[c] - large[c]).abs() < 2e-3, "{figure:?}: {small:?} {large:?}");
            }
        }
        let at = |figure: Figure, x: u32, y: u32| figure.draw([100, 100])[(y * 100 + x) as usize];
        // The top bar reaches to the right, the foot does not.
        assert_eq!(at(Figure::Letter, 65, 17), [1.0; 3]);
        assert_eq!(at(Figure::Letter, 65, 82), [DARK; 3]);
        // The bar reaches past the stem, the stem below the bar.
        assert_eq!(at(Figure::Digit, 71, 62), [1.0; 3]);
        assert_eq!(at(Figure::Digit, 60, 80), [1.0; 3]);
        assert_eq!(at(Figure::Digit, 28, 38), [DARK; 3]);
        assert_eq!(at(Figure::Ring, 50, 12), [1.0; 3]);
        assert_eq!(at(Figure::Ring, 50, 50), [DARK; 3]);
        assert_eq!(at(Figure::Discs, 50, 50), [1.0; 3]);
        assert_eq!(at(Figure::Discs, 50, 20), [1.0, DARK, DARK]);
        assert_eq!(Figure::Letter.draw([30, 20]).len(), 600);
    }
}
