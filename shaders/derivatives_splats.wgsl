// The adjoint pass, `computeDerivatives` of SlangSplats2D: undoes a tile's list from its end, sums the derivatives of its
// pixels splat by splat, and sends each sum to the gradients. Its `clearDerivatives` and `updateBlobs` are step.wgsl, which
// zeroes the gradients that it has used.

#import bind/launch
#import bind/gradients
#import bind/splat_parameters
#import bind/splat_tile
#import transport/splats/blend

@group(0) @binding(8) var<storage, read> image: array<vec4f>;
@group(0) @binding(9) var<storage, read> adjoint: array<vec4f>;

// Three vectors an invocation: centre, opacity, red; conic, green; blue.
var<workgroup> sums: array<Rows, ELEMENT_GROUP>;

#ifdef SUBGROUPS

// The number of the invocation's subgroup, its own number in there, and how many subgroups there are.
var<private> subgroup: vec3u;

// Sums over the workgroup, first over subgroups; the first invocation has the sum. Must be called in uniform control
// flow.
fn sum_tile(lane: u32, by: SplatAdjoint) -> SplatAdjoint {
    var a = subgroupAdd(vec4f(by.center, by.opacity, by.color.x));
    var b = subgroupAdd(vec4f(by.conic, by.color.y));
    var c = subgroupAdd(by.color.z);
    workgroupBarrier();
    if subgroup.y == 0u {
        sums[subgroup.x][0] = a;
        sums[subgroup.x][1] = b;
        sums[subgroup.x][2].x = c;
    }
    workgroupBarrier();
    if lane == 0u {
        a = sums[0][0];
        b = sums[0][1];
        c = sums[0][2].x;
        for (var i = 1u; i < subgroup.z; i++) {
            a += sums[i][0];
            b += sums[i][1];
            c += sums[i][2].x;
        }
    }
    return SplatAdjoint(a.xy, b.xyz, a.z, vec3f(a.w, b.w, c));
}

#else

// Sums over the workgroup in a tree of fixed shape; the first invocation has the sum. Must be called in uniform control
// flow.
fn sum_tile(lane: u32, by: SplatAdjoint) -> SplatAdjoint {
    workgroupBarrier();
    sums[lane][0] = vec4f(by.center, by.opacity, by.color.x);
    sums[lane][1] = vec4f(by.conic, by.color.y);
    sums[lane][2] = vec4f(by.color.z, 0.0, 0.0, 0.0);
    for (var half = ELEMENT_GROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            for (var k = 0u; k < 3u; k++) {
                sums[lane][k] += sums[lane + half][k];
            }
        }
    }
    let a = sums[lane][0];
    let b = sums[lane][1];
    return SplatAdjoint(a.xy, b.xyz, a.z, vec3f(a.w, b.w, sums[lane][2].x));
}

#endif

// Adds the derivatives by a splat to the gradients of its parameters.
fn send(i: u32, by: SplatAdjoint) {
    let sent = project_adjoint(splat_parameters(i), settings.side, by);
    if settings.position.tuned == 1u {
        gradient_add(settings.position, 2u * i, sent.position.x);
        gradient_add(settings.position, 2u * i + 1u, sent.position.y);
    }
    if settings.scale.tuned == 1u {
        gradient_add(settings.scale, 2u * i, sent.scale.x);
        gradient_add(settings.scale, 2u * i + 1u, sent.scale.y);
    }
    if settings.rotation.tuned == 1u {
        gradient_add(settings.rotation, i, sent.rotation);
    }
    if settings.color.tuned == 1u {
        gradient_add_color(settings.color, 3u * i, sent.color);
    }
    if settings.opacity.tuned == 1u {
        gradient_add(settings.opacity, i, sent.opacity);
    }
}

@compute @workgroup_size(ELEMENT_GROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) lane: u32,
#ifdef SUBGROUPS
    @builtin(subgroup_id) subgroup_id: u32,
    @builtin(subgroup_invocation_id) subgroup_lane: u32,
    @builtin(num_subgroups) subgroups: u32,
#endif
) {
#ifdef SUBGROUPS
    subgroup = vec3u(subgroup_id, subgroup_lane, subgroups);
#endif
    let tile = group.y * launch.groups_x + group.x;
    if tile >= settings.tiles_x * settings.tiles_y {
        return;
    }
    // This tile belongs to another rank; it is rendered here only because the loss of this rank's pixels needs it.
    let corner = tile_pixel(tile, 0u);
    if settings.first_pixel + corner.y * settings.width + corner.x >= launch.last_pixel {
        return;
    }
    let range = tile_range(tile);
    let pixel = tile_pixel(tile, lane);
    let inside = pixel.x < settings.width && pixel.y < settings.height;
    let index = settings.first_pixel + pixel.y * settings.width + pixel.x;
    var count = 0u;
    var state = begin();
    var after = StateAdjoint(0.0, vec3f(0.0));
    var by_background = splat_zero();
    if inside {
        count = looked_at[index];
        state.transmittance = image[index].w;
        let by_color = adjoint[index].xyz;
        after = over_adjoint(by_color, splat_background());
        by_background.color = state.transmittance * by_color;
    }
    let background = sum_tile(lane, by_background);
    if lane == 0u && settings.background.tuned == 1u {
        gradient_add_color(settings.background, 0u, background.color);
    }
    if lane == 0u {
        atomicAdd(&statistics[0], min(TILE, settings.width - pixel.x) * min(TILE, settings.height - pixel.y));
    }
    for (var i = range.y; i > range.x; i--) {
        let entry = lists[list_entry(i - 1u)];
        var by = splat_zero();
        if i - range.x <= count {
            by = replay_one(splats[entry], vec2f(pixel) + 0.5, &state, &after);
        }
        let sum = sum_tile(lane, by);
        if lane == 0u {
            send(entry, sum);
        }
    }
    report_faults();
}
