// Where a path is scattered: by a phase function in a medium, by a BSDF on a surface.

#import common/math
#import transport/scene/interaction

struct Vertex {
    // Whether the path is about to be scattered at this vertex.
    turning: bool,
    on_surface: bool,
    // The position, in a medium.
    p: vec3f,
    // The interaction, on a surface.
    at: Interaction,
}

// A vertex in a medium.
fn vertex_in_medium(p: vec3f) -> Vertex {
    var vertex: Vertex;
    vertex.turning = true;
    vertex.p = p;
    return vertex;
}

fn vertex_is_on_surface(vertex: ptr<function, Vertex>) -> bool {
    return SCATTERING_SURFACES && ((*vertex).on_surface || !MEDIA);
}

// The origin of a ray that leaves the vertex in this direction.
fn vertex_origin(vertex: ptr<function, Vertex>, direction: vec3f) -> vec3f {
    if vertex_is_on_surface(vertex) {
        return leave((*vertex).at.hit, direction);
    }
    return (*vertex).p;
}
