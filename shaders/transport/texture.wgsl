// Colours over a surface.

#import bind/world

// The reflectance at `uv`: one colour, or a checkerboard whose squares have edges of one half. Images stay on the CPU
// device.
fn texture_eval(record: Texture, uv: vec2f) -> vec3f {
    let u = record.to_uv[0].x * uv.x + record.to_uv[0].y * uv.y + record.to_uv[0].z;
    let v = record.to_uv[1].x * uv.x + record.to_uv[1].y * uv.y + record.to_uv[1].z;
    let first = record.kind == 0u || ((u - floor(u) > 0.5) == (v - floor(v) > 0.5));
    return select(record.color1.xyz, record.color0.xyz, first);
}
