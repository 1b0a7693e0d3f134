// The optic between the lamp and the film: a slab, or a cube, chosen by the pipeline constant CUBE.

#import bind/light
#import transport/light/cube
#import transport/light/slab

// Film position and weight of a path, if it `arrives`.
struct Arrival {
    // In pixels from the film's upper left corner.
    film: vec2f,
    // Transmitted share of light, times film pixels per unit of screen area.
    weight: f32,
    arrives: bool,
    // Whether it was bent: a path that passed beside the optic depends on no entry of the parameter.
    bent: bool,
    // What the adjoint needs, of the optic that there is.
    slab: SlabTrace,
    cube: CubeTrace,
}

// Follows light from a place of the lamp, in [0, 1]².
fn follow(place: vec2f) -> Arrival {
    var arrival: Arrival;
    if CUBE {
        let path = cube_follow(place);
        arrival.film = path.film;
        arrival.weight = path.weight;
        arrival.arrives = path.arrives;
        arrival.bent = path.bent;
        arrival.cube = path.trace;
    } else {
        let path = slab_follow(place);
        arrival.film = path.film;
        arrival.weight = path.weight;
        arrival.arrives = path.arrives;
        arrival.bent = path.bent;
        arrival.slab = path.trace;
    }
    return arrival;
}

#ifdef REPLAY

// Sends derivatives by a path's film position and weight to the entries of the optic's parameter.
fn send(arrival: Arrival, by_film: vec2f, by_weight: f32) {
    if CUBE {
        cube_send(arrival.cube, by_film, by_weight);
    } else {
        slab_send(arrival.slab, by_film, by_weight);
    }
}

#endif
