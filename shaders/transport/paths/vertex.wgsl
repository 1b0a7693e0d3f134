// Where a path is scattered: by a phase function in a medium, by a BSDF on a surface. The walk treats both alike.

#import common/math

struct Vertex {
    // Whether the path is about to be scattered at all.
    turning: bool,
    // The place, and the point beside it from which what leaves it begins.
    q: vec3f,
    p: vec3f,
    on_surface: bool,
    // Of a surface: its own normal, the one that light is reflected about, and its reflectance, which is one in a
    // medium.
    normal: vec3f,
    shading: vec3f,
    color: vec3f,
}

// A place in a medium.
fn vertex_in_medium(p: vec3f) -> Vertex {
    return Vertex(true, p, p, false, vec3f(0.0), vec3f(0.0), vec3f(1.0));
}
