// The records of a path-traced scene, and the tables computed from its parameters' values.

#import bind/contents
#import bind/launch

@group(0) @binding(19) var<uniform> settings: PathSettings;
// Records of all kinds, at the offsets in `launch`: first those that a scene has few of, then those of meshes and motions.
#ifdef UNIFORM_RECORDS
@group(0) @binding(20) var<uniform> records: array<vec4u, UNIFORM_VECTORS>;
#else
@group(0) @binding(20) var<storage, read> records: array<vec4u>;
#endif
#ifdef UNIFORM_FEW_RECORDS
// A copy of the first ones in a uniform buffer.
@group(0) @binding(30) var<uniform> few_records: array<vec4u, UNIFORM_VECTORS>;
#endif
// Majorants of every medium's scaled extinction, cell by cell; then the environment map's table: cumulative probabilities of
// its rows, of each row's columns, and the weights of its texels; then the tables of textured area lights, alike but without
// weights; then those of plastics' coats.
@group(0) @binding(21) var<storage, read> bounds: array<f32>;

// One vector of a record of a kind that a scene has few of.
fn few_record(at: u32) -> vec4u {
#ifdef UNIFORM_FEW_RECORDS
    return few_records[at];
#else
    return records[at];
#endif
}

fn few_floats(at: u32) -> vec4f {
    return bitcast<vec4f>(few_record(at));
}

fn few_rows(at: u32) -> Rows {
    return Rows(few_floats(at), few_floats(at + 1u), few_floats(at + 2u));
}

// One vector of any other record.
fn float_record(at: u32) -> vec4f {
    return bitcast<vec4f>(records[at]);
}

// The number of shapes that rays test one by one, outside the BVH.
fn single_count() -> u32 {
    return few_record(launch.singles_at).x;
}

// The surface index of one of the shapes that are not meshes.
fn single_record(index: u32) -> u32 {
    return few_record(launch.singles_at + ((index + 1u) >> 2u))[(index + 1u) & 3u];
}

fn volume_record(index: u32) -> Volume {
    let at = launch.volumes_at + 5u * index;
    let rest = few_record(at + 4u);
    return Volume(few_rows(at), few_record(at + 3u), rest.x, rest.y, rest.z, rest.w);
}

fn medium_record(index: u32) -> Medium {
    let at = launch.media_at + 8u * index;
    let low = few_record(at + 3u);
    let high = few_record(at + 4u);
    let volumes = few_record(at + 6u);
    let rest = few_record(at + 7u);
    return Medium(
        few_rows(at),
        bitcast<vec3f>(low.xyz),
        low.w,
        bitcast<vec3f>(high.xyz),
        high.w,
        few_record(at + 5u),
        volumes.x,
        volumes.y,
        volumes.z,
        volumes.w,
        bitcast<f32>(rest.x),
        rest.y,
        rest.z,
        bitcast<f32>(rest.w),
    );
}

fn phase_record(index: u32) -> Phase {
    let words = few_record(launch.phases_at + index);
    return Phase(words.x, words.y, words.z, words.w);
}

fn surface_record(index: u32) -> Surface {
    let at = launch.surfaces_at + 8u * index;
    let first = few_record(at + 6u);
    let rest = few_record(at + 7u);
    return Surface(
        few_rows(at),
        few_rows(at + 3u),
        first.x,
        first.y,
        first.z,
        first.w,
        rest.x,
        bitcast<f32>(rest.y),
        rest.z,
        0u,
    );
}

// The motion of a surface, a light or a camera.
fn motion_record(at: u32) -> Motion {
    let slots = records[at];
    let origin = records[at + 1u];
    let radians = records[at + 2u];
    let factors = records[at + 3u];
    return Motion(
        slots.x,
        slots.y,
        slots.z,
        slots.w,
        bitcast<vec3f>(origin.xyz),
        origin.w,
        bitcast<vec3f>(radians.xyz),
        radians.w,
        bitcast<vec3f>(factors.xyz),
        factors.w,
        float_record(at + 4u).xyz,
        records[at + 4u].w,
        Rows(float_record(at + 5u), float_record(at + 6u), float_record(at + 7u)),
        float_record(at + 8u).xyz,
        float_record(at + 8u).w,
    );
}

fn displaced_record(vertex: u32) -> Displaced {
    let at = launch.displaced_at + 4u * vertex;
    return Displaced(float_record(at).xyz, 0u, float_record(at + 1u).xyz, 0u, records[at + 2u], float_record(at + 3u));
}

// A word of the vertex-to-triangle lists.
fn around_value(index: u32) -> u32 {
    return records[launch.around_at + index / 4u][index % 4u];
}

fn distance_grid_record(index: u32) -> DistanceGrid {
    let at = launch.distance_grids_at + 2u * index;
    let size = few_record(at);
    let rest = few_record(at + 1u);
    return DistanceGrid(size.xyz, size.w, rest.x, rest.y);
}

// Distance in cells, counting diagonal steps as one, from a cell of a distance grid to the nearest cell that the surface
// crosses: 0 if it crosses this cell, at most 255.
fn room_value(index: u32) -> u32 {
    return (records[launch.rooms_at + index / 16u][(index / 4u) % 4u] >> (8u * (index % 4u))) & 0xffu;
}

fn distance_value(index: u32) -> f32 {
    return bitcast<f32>(records[launch.distances_at + index / 4u][index % 4u]);
}

fn light_record(index: u32) -> Light {
    let at = launch.lights_at + 9u * index;
    let first = few_record(at + 5u);
    let second = few_record(at + 6u);
    let third = few_record(at + 7u);
    let rest = few_record(at + 8u);
    return Light(
        few_floats(at),
        few_floats(at + 1u),
        few_rows(at + 2u),
        first.x,
        first.y,
        first.z,
        bitcast<f32>(first.w),
        second.x,
        second.y,
        second.z,
        second.w,
        bitcast<vec2f>(third.xy),
        third.zw,
        bitcast<f32>(rest.x),
        bitcast<f32>(rest.y),
        vec2u(0u),
    );
}

fn emissive_triangle_record(index: u32) -> EmissiveTriangle {
    let at = launch.emissive_triangles_at + 5u * index;
    let a = float_record(at);
    let b = float_record(at + 1u);
    let c = records[at + 2u];
    let corner = bitcast<vec3f>(c.xyz);
    return EmissiveTriangle(a.xyz, a.w, b.xyz, b.w, corner, c.w, float_record(at + 3u), float_record(at + 4u).xy, vec2u(0u));
}

fn bsdf_record(index: u32) -> Bsdf {
    let at = launch.bsdfs_at + 2u * index;
    let sides = few_record(at);
    return Bsdf(sides.xy, sides.zw, few_record(at + 1u).x, 0u, 0u, 0u);
}

fn leaf_record(index: u32) -> Leaf {
    let at = launch.leaves_at + 4u * index;
    let first = few_record(at);
    let rest = few_record(at + 1u);
    let bump_scale = few_floats(at + 3u).x;
    return Leaf(
        first.x,
        first.y,
        first.z,
        first.w,
        rest.x,
        rest.y,
        rest.z,
        rest.w,
        few_floats(at + 2u),
        bump_scale,
        0u,
        0u,
        0u,
    );
}

fn factor_record(index: u32) -> Factor {
    let words = few_record(launch.factors_at + index);
    return Factor(words.x, words.y, vec2u(0u));
}

fn texture_record(index: u32) -> Texture {
    let at = launch.textures_at + 4u * index;
    let to_uv = array<vec4f, 2>(few_floats(at), few_floats(at + 1u));
    let first = few_record(at + 2u);
    let rest = few_record(at + 3u);
    return Texture(to_uv, first.x, first.y, first.z, first.w, rest.xy, rest.z, rest.w);
}

// A parameter.
fn parameter_slot(index: u32) -> Slot {
    let words = few_record(launch.parameters_at + index);
    return Slot(words.x, words.y, i32(words.z), i32(words.w));
}

// Address of a parameter's first entry.
fn parameter_first(index: u32) -> u32 {
    return few_record(launch.parameters_at + index).x;
}

// Whether a parameter is optimised.
fn parameter_tuned(index: u32) -> bool {
    return few_record(launch.parameters_at + index).y == 1u;
}
