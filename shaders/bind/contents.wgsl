// Features of the scene, as pipeline constants: drivers drop the code of what it lacks, which would cost registers and
// compile time. The defaults drop nothing but the search of the BVH.

#import common/layout

// Whether rays search the BVH, and whether it holds shapes other than triangles.
override BVH: bool = false;
override SHAPES_IN_TREE: bool = true;
// Whether there are emissive surfaces in the BVH.
override LIGHTS_IN_TREE: bool = true;
// Whether there are media, surfaces that scatter light, an environment map, and textures that are images.
override MEDIA: bool = true;
override SCATTERING_SURFACES: bool = true;
override ENVIRONMENT_MAP: bool = true;
override BITMAPS: bool = true;
// Whether every hit counts as an edge of the path and every surface blocks shadow rays, also one that light passes straight
// through.
override SURFACES_ONLY: bool = false;
// Bit masks of the kinds of shapes and of lights in the scene.
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
