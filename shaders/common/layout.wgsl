// Records filled in by the host, byte for byte as in src/resident/layout.rs and src/device/gpu/records.rs.

// Three rows of an affine map, whose fourth column is the translation; also three vectors of other numbers.
alias Rows = array<vec4f, 3>;

// Cells of a filter's table.
const FILTER_CELLS: u32 = 120u;
// Vectors, of four entries each, of a row of a filter's table: the 121 cell borders, padded.
const FILTER_VECTORS: u32 = 31u;
// The largest number of filters with tables in a scene.
const FILTERS: u32 = 4u;

const DENSITY_RELU: u32 = 0u;
const DENSITY_SOFTPLUS: u32 = 1u;
const DENSITY_EXP: u32 = 2u;

const COLOR_CLIP: u32 = 0u;
const COLOR_SIGMOID: u32 = 1u;
const COLOR_RELU_HALF: u32 = 2u;

const BACKGROUND_NONE: u32 = 0u;
const BACKGROUND_CONSTANT: u32 = 1u;
const BACKGROUND_ENVMAP: u32 = 2u;

const FILTER_BOX: u32 = 0u;
const FILTER_TENT: u32 = 1u;
const FILTER_TABLE: u32 = 2u;

const SENSOR_PERSPECTIVE: u32 = 0u;
const SENSOR_THINLENS: u32 = 1u;
const SENSOR_ORTHOGRAPHIC: u32 = 2u;
const SENSOR_IRRADIANCEMETER: u32 = 3u;
const SENSOR_DISTANT: u32 = 4u;

const AOV_ALBEDO: u32 = 0u;
const AOV_DEPTH: u32 = 1u;
const AOV_POSITION: u32 = 2u;
const AOV_UV: u32 = 3u;
const AOV_GEO_NORMAL: u32 = 4u;
const AOV_SH_NORMAL: u32 = 5u;
const AOV_SHAPE_INDEX: u32 = 6u;
const AOV_DP_DU: u32 = 7u;
const AOV_DP_DV: u32 = 8u;
const AOV_PRIM_INDEX: u32 = 9u;
const AOV_DUV_DX: u32 = 10u;
const AOV_DUV_DY: u32 = 11u;

const AREA_POINT: u32 = 0u;
const AREA_DISK: u32 = 1u;
const AREA_RECTANGLE: u32 = 2u;
const AREA_SPHERE: u32 = 3u;
const AREA_CAVITY: u32 = 4u;
const AREA_CYLINDER: u32 = 5u;
const AREA_PIPE: u32 = 6u;
const AREA_CUBE: u32 = 7u;
const AREA_ROOM: u32 = 8u;

const DISTORTION_NONE: u32 = 0u;
const DISTORTION_BROWN: u32 = 1u;
const DISTORTION_FISHEYE: u32 = 2u;

const BACKDROP_OPAQUE: u32 = 0u;
const BACKDROP_COLOR: u32 = 1u;
const BACKDROP_RANDOM: u32 = 2u;

const OCCUPANCY_RENDERS: u32 = 1u;
const OCCUPANCY_LEARNS: u32 = 2u;

const NO_REFERENCE: u32 = 0xffffffffu;

// A pass over a view of splats.
struct SplatSettings {
    position: Slot,
    scale: Slot,
    rotation: Slot,
    color: Slot,
    opacity: Slot,
    background: Slot,
    count: u32,
    group: u32,
    groups: u32,
    groups_x: u32,
    // Tiles that the pass looks at: a row of the view's, and how many rows of them from `first_row` on.
    tiles_x: u32,
    tiles_y: u32,
    width: u32,
    height: u32,
    first_pixel: u32,
    side: f32,
    offset: vec2f,
    first_row: u32,
    padding_0: u32,
    padding_1: u32,
    padding_2: u32,
}

// A slab in its own frame: src/resident/optics.rs.
struct Slab {
    // The point where the ray from (u, v) = (0, 0) of the light meets the plane of the flat side, and the derivatives of that
    // point by u (`across`) and v (`down`).
    origin: vec2f,
    across: vec2f,
    down: vec2f,
    thickness: f32,
    eta: f32,
    // Unit direction of light before the slab (`outside`), and in it (`inside`).
    outside: vec3f,
    // Share of light that gets through the flat side.
    entering: f32,
    inside: vec3f,
    padding: u32,
}

// A cube of varying index in its own frame.
struct Cube {
    // The point (u, v) = (0, 0) of the light, and its derivatives by u (`across`) and v (`down`).
    corner: vec3f,
    step: f32,
    across: vec3f,
    most_steps: u32,
    down: vec3f,
    refracts: u32,
    direction: vec3f,
    padding: u32,
}

// A screen in the optic's frame.
struct Screen {
    to_screen: Rows,
    front: f32,
    padding_0: u32,
    padding_1: u32,
    padding_2: u32,
}

// A collimated light: each point of a rectangle emits its texel's radiance along the normal.
struct Lamp {
    to_uv: array<vec4f, 2>,
    size: vec2u,
    // Its first texel among the records.
    first: u32,
    nearest: u32,
    wrap: u32,
    padding_0: u32,
    padding_1: u32,
    padding_2: u32,
}

// A film as the screen's image: src/resident/light.rs.
struct LightFilm {
    row_x: vec3f,
    pixels: f32,
    row_y: vec3f,
    near_clip: f32,
    depth: vec3f,
    far_clip: f32,
    // Factor on light's radiance × share of it that arrives, for one path of the pass: gives its contribution to the sum of
    // all pixels.
    exposure: vec3f,
    // Fixed-point units per 1.0, of a film that is summed in integers.
    units: f32,
    size: vec2u,
    // The view's first pixel in the image of the batch, and its sensor.
    first_pixel: u32,
    sensor: u32,
    // The filter: radius in pixels, nodes per pixel, number of nodes, and index of the first one among the records.
    radius: f32,
    nodes: f32,
    node_count: u32,
    filter_at: u32,
}

// A pass over a view of light tracing.
struct LightSettings {
    // The parameter of the optic (heights of the slab, or index of the cube), and its texels along x, y and z.
    parameter: Slot,
    size: vec4u,
    slab: Slab,
    cube: Cube,
    screen: Screen,
    film: LightFilm,
    lamp: Lamp,
}

// A film's filter: radius in pixels, nodes per pixel, and number of nodes.
struct FilmFilter {
    radius: f32,
    nodes: f32,
    node_count: u32,
}

// Vectors, of two filter nodes each, for the widest filter that light is splatted with.
const SPLAT_VECTORS: u32 = 513u;

// Light tracing from the lights onto the film of a view.
struct Tracer {
    // From the world to the frame of the sensor.
    to_local: Rows,
    // World length of a unit of depth in the sensor's frame, and area in the film's plane per world area perpendicular to the
    // view; both are 1 unless `to_world` scales.
    step: f32,
    share: f32,
    // Longest path in edges, and the depth beyond which Russian roulette may end a path.
    max_depth: u32,
    rr_depth: u32,
    // A sphere around all surfaces.
    center: vec3f,
    radius: f32,
    size: vec2u,
    // The view's first pixel in the image of the batch, and its sensor.
    first_pixel: u32,
    sensor: u32,
    // One over the number of pixels of the whole film; `size` is that of its crop window.
    scale: f32,
    // The filter: radius in pixels, nodes per pixel, number of nodes, and their values and slopes.
    filter_radius: f32,
    nodes: f32,
    node_count: u32,
    table: array<vec4f, SPLAT_VECTORS>,
}

// A reconstruction filter f, integrated from the left up to the borders of cells of equal width: the distribution function of
// |f|, and the integral of f over the total integral of |f|.
struct FilterTable {
    drawn: array<vec4f, FILTER_VECTORS>,
    signed: array<vec4f, FILTER_VECTORS>,
}

// Values that all rays of a scene share.
struct Scene {
    world_to_unit: Rows,
    world_to_field: Rows,
    world_to_env: Rows,
    sigma_size: vec4u,
    sh_size: vec4u,
    occupancy_size: vec4u,
    env_size: vec2u,
    env_scale: f32,
    step_length: f32,
    stop: f32,
    has_field: u32,
    sh_degree: u32,
    density_activation: u32,
    color_activation: u32,
    background: u32,
    // Parameter that holds env_scale for paths; NONE without a map.
    env_scale_slot: u32,
    padding: u32,
    filters: array<FilterTable, FILTERS>,
}

// A camera, its film, and the position of its reference.
struct Sensor {
    to_world: Rows,
    distortion: array<vec4f, 2>,
    backdrop_color: vec4f,
    focal: vec2f,
    center: vec2f,
    width: u32,
    height: u32,
    near_clip: f32,
    far_clip: f32,
    filter_kind: u32,
    filter_size: f32,
    distortion_model: u32,
    backdrop: u32,
    first_pixel: u32,
    medium: u32,
    kind: u32,
    sample_border: u32,
    filter_table: u32,
    area: u32,
    aperture_radius: f32,
    focus_distance: f32,
    area_to_world: Rows,
}

// Marks a missing medium, volume, light or parameter.
const NONE: u32 = 0xffffffffu;

const LOOKUP_CONSTANT: u32 = 0u;
const LOOKUP_TRILINEAR: u32 = 1u;
const LOOKUP_NEAREST: u32 = 2u;

const WRAP_CLAMP: u32 = 0u;
const WRAP_REPEAT: u32 = 1u;
const WRAP_MIRROR: u32 = 2u;

const PHASE_ISOTROPIC: u32 = 0u;
const PHASE_HG: u32 = 1u;
const PHASE_RAYLEIGH: u32 = 2u;
const PHASE_BLEND: u32 = 3u;

const SURFACE_CUBE: u32 = 0u;
const SURFACE_SPHERE: u32 = 1u;
const SURFACE_RECTANGLE: u32 = 2u;
const SURFACE_MESH: u32 = 3u;
const SURFACE_DISK: u32 = 4u;
const SURFACE_CYLINDER: u32 = 5u;
const SURFACE_DISTANCES: u32 = 6u;

const LEAF_NULL: u32 = 0u;
const LEAF_DIFFUSE: u32 = 1u;
const LEAF_CONDUCTOR: u32 = 2u;
const LEAF_ROUGH_CONDUCTOR: u32 = 3u;
const LEAF_DIELECTRIC: u32 = 4u;
const LEAF_THIN_DIELECTRIC: u32 = 5u;
const LEAF_ROUGH_DIELECTRIC: u32 = 6u;
const LEAF_PLASTIC: u32 = 7u;
const LEAF_ROUGH_PLASTIC: u32 = 8u;
const LEAF_PRINCIPLED: u32 = 9u;
const LEAF_PRINCIPLED_THIN: u32 = 10u;

// Bits of a leaf's flags.
const LEAF_TURNED: u32 = 1u;
const LEAF_BECKMANN: u32 = 2u;
const LEAF_ALL_NORMALS: u32 = 4u;
const LEAF_NONLINEAR: u32 = 8u;
const LEAF_SPECULAR: u32 = 16u;
const LEAF_VARIES: u32 = 32u;
const LEAF_RELIEF_TURNED: u32 = 64u;
const LEAF_BUMP: u32 = 128u;
const LEAF_FLIPS: u32 = 256u;
const LEAF_SHADOWS: u32 = 512u;
const LEAF_FRONT: u32 = 1024u;
const LEAF_BACK: u32 = 2048u;

// Bits of a medium's flags.
const MEDIUM_ALIGNED: u32 = 1u;
const MEDIUM_SEALED: u32 = 2u;

// Bits of a BSDF's flags.
const BSDF_SMOOTH: u32 = 1u;
const BSDF_NULL: u32 = 2u;
const BSDF_VARIES: u32 = 4u;
const BSDF_ANISOTROPIC: u32 = 8u;

// The most textures that a leaf has: those of a principled BSDF, or, in a scene without one, of a rough conductor or
// dielectric. This sizes arrays in private memory, which a driver reserves for all invocations that can be resident on the
// GPU.
#ifdef MANY_TEXTURES
const LEAF_TEXTURES: u32 = 12u;
#else
const LEAF_TEXTURES: u32 = 5u;
#endif

// Cosines tabulated for a plastic's coat, and floats in that table.
const COAT_ENTRIES: u32 = 64u;
const COAT_FLOATS: u32 = 196u;

const LIGHT_POINT: u32 = 0u;
const LIGHT_SPOT: u32 = 1u;
const LIGHT_DIRECTIONAL: u32 = 2u;
const LIGHT_AREA: u32 = 3u;
const LIGHT_ENVMAP: u32 = 4u;
const LIGHT_PROJECTOR: u32 = 5u;
const LIGHT_COLLIMATED: u32 = 6u;

const TEXTURE_CONSTANT: u32 = 0u;
const TEXTURE_CHECKERBOARD: u32 = 1u;
const TEXTURE_BITMAP: u32 = 2u;
const TEXTURE_VERTICES: u32 = 3u;
const TEXTURE_FACES: u32 = 4u;
const TEXTURE_VOLUME: u32 = 5u;
const TEXTURE_SQUARES: u32 = 6u;

// Whether media are ignored; and whether alpha takes surfaces that light passes straight through for opaque, or looks through them.
const SURFACES_ONLY_NO: u32 = 0u;
const SURFACES_ONLY_OPAQUE: u32 = 1u;
const SURFACES_ONLY_CLEAR: u32 = 2u;

const GRADIENT_FREE_FLIGHT: u32 = 0u;
const GRADIENT_DRT: u32 = 1u;
const GRADIENT_PAIRED: u32 = 2u;

// An array and its placement in the world.
struct Volume {
    world_to_unit: Rows,
    size: vec4u,
    slot: u32,
    filter_kind: u32,
    wrap: u32,
    padding: u32,
}

// A medium: indices of its volumes and its majorants.
struct Medium {
    world_to_grid: Rows,
    // World-space box outside of which the extinction is zero.
    low: vec3f,
    // 1 if no surface intersects that box.
    clear: u32,
    high: vec3f,
    // 1 if a ray that leaves that box meets nothing but the medium's boundary and the background.
    alone: u32,
    // Cells of the majorant grid along x, y, z, and the index of the first among all media's.
    majorants: vec4u,
    sigma_t: u32,
    albedo: u32,
    emission: u32,
    phase: u32,
    scale: f32,
    spectral: u32,
    flags: u32,
    kappa: f32,
}

// A phase function.
struct Phase {
    kind: u32,
    slot: u32,
    weight: u32,
    first: u32,
}

// A shape.
struct Surface {
    to_local: Rows,
    to_world: Rows,
    kind: u32,
    bsdf: u32,
    interior: u32,
    exterior: u32,
    light: u32,
    side: f32,
    // Index of its distance grid, if the shape is given by signed distances.
    distances: u32,
    padding: u32,
}

// Signed distances on a grid.
struct DistanceGrid {
    // Points along x, y and z.
    size: vec3u,
    // The index of its first value; x is fastest.
    first: u32,
    // Whether shading normals are blended between cells.
    smooth_normals: u32,
    // The index of its first cell among those of all grids.
    first_room: u32,
}

// A BSDF: on each side a mixture of leaves.
struct Bsdf {
    // The first leaf and the number of leaves.
    front: vec2u,
    back: vec2u,
    flags: u32,
    padding_0: u32,
    padding_1: u32,
    padding_2: u32,
}

// A leaf: a BSDF that is not a mixture, with the factors of its weight.
struct Leaf {
    kind: u32,
    flags: u32,
    first_factor: u32,
    factors: u32,
    // The first of its textures, which follow each other.
    first_texture: u32,
    // Of a plastic: index of its coat's table.
    coat: u32,
    // How many textures there are.
    textures: u32,
    // Texture of the normal map or bump map; NONE where the leaf uses the surface's own normal.
    relief: u32,
    // Relative sampling rates of the lobes of a principled BSDF.
    rates: vec4f,
    // Factor on the heights of a bump map.
    bump_scale: f32,
    padding_0: u32,
    padding_1: u32,
    padding_2: u32,
}

// A factor of a leaf's weight: a texture's value x, or 1 - x.
struct Factor {
    factor_texture: u32,
    complement: u32,
    padding: vec2u,
}

// Data at the vertices of a mesh's triangle: normals (w: the vertex's index, as bits), uv of the first two, uv of the third.
struct Corner {
    normals: Rows,
    uv_ab: vec4f,
    uv_c: vec2f,
    // Index of the triangle's shape.
    shape: u32,
    // Index of the triangle in its mesh.
    face: u32,
}

// A light that next-event estimation samples.
struct Light {
    // The fourth component is the area of an area light.
    position: vec4f,
    // The fourth component is the cosine of a spot light's cutoff, or the radius of a sphere.
    direction: vec4f,
    // World to the frame of a spot or a projector.
    to_local: Rows,
    kind: u32,
    slot: u32,
    surface: u32,
    cos_beam: f32,
    // The range of emissive triangles of an area light on a cube or a mesh.
    first_emissive: u32,
    emissive_triangles: u32,
    light_texture: u32,
    // Where the table of a textured area light begins among the sampling tables.
    table: u32,
    // Half the width and height of the picture of a spot or a projector at the distance one.
    extent: vec2f,
    // Columns and rows of that table.
    cells: vec2u,
    // Probability that next-event estimation chooses this light, if that differs between lights; and the sum over the lights
    // up to this one.
    probability: f32,
    cumulative: f32,
    padding: vec2u,
}

// A triangle that emits on the side of its normal.
struct EmissiveTriangle {
    // `begins` to `ends` is its interval in the light's area, normalised to [0, 1].
    a: vec3f,
    begins: f32,
    b: vec3f,
    ends: f32,
    c: vec3f,
    // Of a mesh: index of the triangle among those of all meshes; else NONE.
    triangle: u32,
    // u, v of the first two corners, and of the third.
    uv_ab: vec4f,
    uv_c: vec2f,
    padding_uv: vec2u,
}

// A texture: one value, a checkerboard of two values or textures, an image, values of a mesh's vertices or faces, or a volume.
struct Texture {
    to_uv: array<vec4f, 2>,
    kind: u32,
    // Parameter that holds its values. `other_slot`: of a checkerboard the parameter of the other squares, of a volume the
    // index of its record. Of a checkerboard of textures both are their indices.
    slot: u32,
    other_slot: u32,
    channels: u32,
    size: vec2u,
    filter_kind: u32,
    wrap: u32,
}

// Values that all paths of a scene share.
struct PathSettings {
    surfaces: u32,
    lights: u32,
    environment: u32,
    max_depth: u32,
    rr_depth: u32,
    hide_emitters: u32,
    gradient_kind: u32,
    spectral: u32,
    // Bounds of all triangles.
    low: vec3f,
    // A constant SURFACES_ONLY_….
    surfaces_only: u32,
    high: vec3f,
    // 1 if lights are chosen with the probabilities in their records.
    weighted: u32,
}

// Workgroup sizes of passes over rays, and over array elements.
const RAY_GROUP: u32 = 64u;
const ELEMENT_GROUP: u32 = 256u;

const LOSS_L1: u32 = 0u;
const LOSS_L2: u32 = 1u;
const LOSS_HUBER: u32 = 2u;
const LOSS_RELATIVE_L2: u32 = 3u;
const LOSS_LOG_L1: u32 = 4u;
const LOSS_LINEAR: u32 = 5u;
const LOSS_SCALED_L2: u32 = 6u;
const LOSS_MEANS: u32 = 7u;

const REFERENCE_NONE: u32 = 0u;
const REFERENCE_CONSTANT: u32 = 1u;
const REFERENCE_UNORM8: u32 = 2u;
const REFERENCE_FLOAT: u32 = 3u;

// Addresses of the second buffer of parameters begin here.
const SECOND_BANK: u32 = 0x80000000u;

// Vectors of 16 bytes that a uniform buffer holds: 64 KiB.
const UNIFORM_VECTORS: u32 = 4096u;

// A parameter: the address of its first entry among the values, whether it is optimised, and by how many binary digits its
// fixed-point gradient sums are finer than `Launch.digits` says.
struct Slot {
    first: u32,
    tuned: u32,
    spread: i32,
    magnitude: i32,
}

// A launch: part of a pass over the rays of a batch.
struct Launch {
    // Random keys of the iteration's objective and of the pass.
    objective: vec4u,
    key: vec4u,
    // The parameters of a field, and the radiance behind a scene.
    sigma: Slot,
    sh: Slot,
    emitter: Slot,
    // The part: a range of the batch's pixels, and of the samples of each.
    first_pixel: u32,
    last_pixel: u32,
    first_sample: u32,
    last_sample: u32,
    // Samples per pixel of the whole pass.
    spp: u32,
    // Whether pixels are drawn from the table at random (1) or taken in order (0).
    drawn: u32,
    // Workgroups per row of the dispatch.
    groups_x: u32,
    // Entries of the pixel table, and the offsets of its parts in `tables`.
    sensor_count: u32,
    starts_at: u32,
    sensors_at: u32,
    occupancy_at: u32,
    reach_at: u32,
    reference_kind: u32,
    loss_kind: u32,
    loss_delta: f32,
    loss_seed: u32,
    // 1 over the number of values in the batch's image.
    adjoint_scale: f32,
    // Offsets of the kinds of records, and of the parameters.
    surfaces_at: u32,
    media_at: u32,
    volumes_at: u32,
    phases_at: u32,
    lights_at: u32,
    bsdfs_at: u32,
    leaves_at: u32,
    factors_at: u32,
    textures_at: u32,
    parameters_at: u32,
    nodes_at: u32,
    blocks_at: u32,
    corners_at: u32,
    emissive_triangles_at: u32,
    distance_grids_at: u32,
    distances_at: u32,
    rooms_at: u32,
    // Offset of the environment map's table, after the majorants.
    environment_at: u32,
    // Where the coats of plastics begin among the bounds.
    coats_at: u32,
    // Of fixed-point gradient sums: binary digits that resolve the largest adjoint of a path, for a parameter of one entry,
    // and the binary exponent of that adjoint (src/device/units.rs).
    digits: i32,
    exponent: i32,
    // The channel (AOV_…) that a pass over the first surfaces renders.
    aov: u32,
    // Whether samples are splatted onto all pixels around, and which step of that this is: EXPOSURE_….
    exposure: u32,
    // Factor on the reference in LOSS_SCALED_L2; the factor on the image is `loss_delta`.
    loss_scale: f32,
    // Factor on rays' derivatives by camera positions: a power of two that makes their size independent of the world's unit
    // of length.
    view_length: f32,
    // Offsets of the records of how surfaces, lights and cameras are moved, of the vertices that heights displace, and of the
    // triangles around vertices.
    motions_at: u32,
    displaced_at: u32,
    light_motions_at: u32,
    sensor_motions_at: u32,
    around_at: u32,
    // Offset of the list of shapes that are not meshes: how many of them rays test one by one (all, or 0 if they are in the
    // BVH), then the indices of all.
    singles_at: u32,
    // Number of slots in which a wave stores the hits of a path's edges, and the index of the first edge that is stored.
    wave_places: u32,
    wave_first: u32,
    // Location of the first slot: a part of the wave's buffer, and a word in it.
    wave_edges_at: u32,
    wave_edges_word: u32,
}

// A vertex that a texture of heights displaces.
struct Displaced {
    // Displacement for a height of one, and position at height zero.
    along: vec3f,
    padding_0: u32,
    rest: vec3f,
    padding_1: u32,
    // The texels around it, and their weights.
    texels: vec4u,
    weights: vec4f,
}

// The length of a Motion, in units of 16 bytes.
const MOTION_UNITS: u32 = 9u;

// How optimised parameters move a surface, a light or a camera: the parameters' indices, NONE where there is none, and
// quantities computed from their values.
struct Motion {
    translate: u32,
    rotate: u32,
    scale: u32,
    // Number of scale factors: one, or three.
    scale_channels: u32,
    // Centre of rotation and scaling.
    origin: vec3f,
    // The positions of a mesh's vertices, or heights that displace them.
    vertices: u32,
    // The rotation vector: the axis times the angle.
    radians: vec3f,
    // The normals of a mesh's vertices.
    normals: u32,
    // The three scale factors.
    factors: vec3f,
    // Index of its first displaced vertex, among those of all meshes.
    relief: u32,
    // Of the angle x: sin x / x, (1 - cos x) / x^2 and (x - sin x) / x^3.
    sines: vec3f,
    // Of a smooth mesh, start of its vertex-to-triangle lists: for each vertex the position of its first triangle, then for
    // each triangle its two other vertices.
    around: u32,
    // Where hits slide along a path's ray (transport/scene/glide.wgsl): three affine functions of the point, whose squares
    // sum to one at the surface's border and to zero in its middle; of a box the largest of the three is left out.
    track: Rows,
    middle: vec3f,
    // The surface's smallest half-width; zero where points never slide.
    extent: f32,
}

// Samples are drawn from their pixel's filter.
const EXPOSURE_NONE: u32 = 0u;
// One sample of each pixel is rendered, or splatted onto the pixels around.
const EXPOSURE_SAMPLE: u32 = 1u;
// All samples are splatted: the sums become the image.
const EXPOSURE_DONE: u32 = 2u;

const OPTIMIZER_ADAM: u32 = 0u;
const OPTIMIZER_SGD: u32 = 1u;
const OPTIMIZER_RMSPROP: u32 = 2u;

const PENALTY_TOTAL_VARIATION: u32 = 0u;
const PENALTY_SPARSITY: u32 = 1u;

// A pass over the elements of one parameter.
struct Elements {
    // Texels along x, y, z, and channels; of the source when resampling.
    size: vec4u,
    source_size: vec4u,
    // The parameter's offset in its buffer and number of entries.
    first: u32,
    count: u32,
    source_first: u32,
    // Workgroups per row of the dispatch, and invocations in total.
    groups_x: u32,
    threads: u32,
    // Kind of the optimiser or penalty.
    kind: u32,
    mask_updates: u32,
    rate: f32,
    second_correction: f32,
    low: f32,
    high: f32,
    // beta_1, momentum or decay; and beta_2.
    decay_1: f32,
    decay_2: f32,
    epsilon: f32,
    // Weight of a penalty, divided by the number of its terms; of fixed-point sums, their unit.
    weight: f32,
    // Offset at which the pass's workgroups write their partial sums.
    report_at: u32,
    // For majorants: factor on the extinction, safety margin, and lower limit.
    scale: f32,
    margin: f32,
    least: f32,
    // 1 if the first texel of a row is behind the last.
    wraps: u32,
}

// A BVH node: minimum x, y and z of its eight children's boxes, then the maxima, then the children.
struct Node {
    planes: array<vec4f, 12>,
    children: array<vec4u, 2>,
}

// The kind of a child, in its two highest bits.
const CHILD_KIND: u32 = 0xc0000000u;
const CHILD_NODE: u32 = 0u;
const CHILD_BLOCK: u32 = 0x40000000u;
const CHILD_SURFACE: u32 = 0x80000000u;

// Up to four triangles: x, y and z of all first corners, then of the second and third corners, then their numbers.
struct Block {
    corners: array<vec4f, 9>,
    triangles: vec4u,
}

// Vertices that a chain of smooth glass and mirrors may have.
const CHAIN_VERTICES: u32 = 16u;

// Upper limit of the levels of the scene's BVH: that of any scene (DEEP), or one that suffices for most.
#ifdef DEEP
const MAX_LEVELS: u32 = 40u;
#else
const MAX_LEVELS: u32 = 12u;
#endif
