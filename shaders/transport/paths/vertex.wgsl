// Where a path is scattered: by a phase function in a medium, by a BSDF on a surface. The walk treats both alike.

#import common/math

struct Vertex {
    // Whether the path is about to be scattered at this vertex.
    turning: bool,
    // The position, and the origin of rays that leave it (offset from a surface against self-intersection).
    q: vec3f,
    p: vec3f,
    on_surface: bool,
    // Of a surface: geometric normal, shading normal, and reflectance, which is one in a medium.
    normal: vec3f,
    shading: vec3f,
    color: vec3f,
}

// A vertex in a medium.
fn vertex_in_medium(p: vec3f) -> Vertex {
    return Vertex(true, p, p, false, vec3f(0.0), vec3f(0.0), vec3f(1.0));
}
