// What a scene has, as constants of its pipelines: drivers leave out what it has not, which would cost registers, and time
// to compile. Without values everything is there.

#import common/layout

// Whether surfaces are found through the BVH, and whether those are among them that are no triangles.
override BVH: bool = false;
override SHAPES_IN_TREE: bool = true;
// Whether surfaces that shine are found through the BVH.
override LIGHTS_IN_TREE: bool = true;
// Whether there are media, surfaces that scatter light, an environment map, and textures that are images.
override MEDIA: bool = true;
override SCATTERING_SURFACES: bool = true;
override ENVIRONMENT_MAP: bool = true;
override BITMAPS: bool = true;
// Whether every surface that is met is an edge of the path and casts a shadow, also one that light passes straight through.
override SURFACES_ONLY: bool = false;
// The kinds of shapes and of lights, a bit each.
override SHAPES: u32 = 0xffffffffu;
override LIGHTS: u32 = 0xffffffffu;

// Whether a shape's kind is `kind`.
fn is_shape(actual: u32, kind: u32) -> bool {
    return (SHAPES & (1u << kind)) != 0u && actual == kind;
}

// Whether a light's kind is `kind`.
fn is_light(actual: u32, kind: u32) -> bool {
    return (LIGHTS & (1u << kind)) != 0u && actual == kind;
}
