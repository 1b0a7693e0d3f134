// What a ray meets first, as searches through a hierarchy tell it.

// Where a ray first meets a surface at distance t: a triangle at the point (1 - u - v) a + u b + v c, or another surface.
struct Nearest {
    t: f32,
    // Of a triangle: its number with the bit TRIANGLE; of a surface: its number.
    number: u32,
    // Of a triangle: block and lane; of another surface: its part, of a cube the face.
    place: u32,
    lane: u32,
    u: f32,
    v: f32,
    found: bool,
}

const TRIANGLE: u32 = 0x80000000u;
