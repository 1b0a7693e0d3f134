// The pixel of a ray, the ray of a sample, and random choices per pixel (as opposed to per ray).

#import bind/launch
#import transport/rays/camera
#import transport/rays/film
#import transport/rays/random
#import transport/rays/sensor

// A pixel: `index` is y * width + x.
struct Pixel {
    sensor: u32,
    index: u32,
}

// Counter blocks of draws that belong to a pixel or ray of the batch rather than to a sample.
const DRAWN_PIXEL: u32 = 65536u;
const RANDOM_BACKDROP: u32 = 131072u;
const LINEAR_WEIGHT: u32 = 262144u;

// Counter block of a sample's place on a lens or an area.
const LENS: u32 = 536870912u;

// The number of pixels in the batch's table.
fn table_length() -> u32 {
    return tables[launch.starts_at + launch.sensor_count];
}

// The table's pixel at `index` < table_length(): the last slot whose start is not greater than it.
fn table_pixel(index: u32) -> Pixel {
    var low = 0u;
    var high = launch.sensor_count;
    while high - low > 1u {
        let middle = (low + high) / 2u;
        if tables[launch.starts_at + middle] <= index {
            low = middle;
        } else {
            high = middle;
        }
    }
    return Pixel(tables[launch.sensors_at + low], index - tables[launch.starts_at + low]);
}

// The random pixel of ray `index`, in a batch of rays drawn uniformly from all pixels of the table; equal in every
// pass with the same objective key.
fn drawn_pixel(objective: vec4u, index: u32) -> Pixel {
    let words = random_words(objective, Counter(0u, index, 0u, DRAWN_PIXEL));
    return table_pixel(random_index(words.x, table_length()));
}

// The pixel at `index` of the batch.
fn batch_pixel(index: u32) -> Pixel {
    if launch.drawn != 0u {
        return drawn_pixel(objective_key(), index);
    }
    return table_pixel(index);
}

// The random background colour of a pixel, behind both its reference and the medium; equal in every pass of an
// iteration.
fn random_backdrop(objective: vec4u, pixel: Pixel) -> vec3f {
    return random_uniform(objective, Counter(pixel.sensor, pixel.index, 0u, RANDOM_BACKDROP)).xyz;
}

// The colour that replaces the emitter behind a pixel with a random background.
struct Backdrop {
    color: vec3f,
    present: bool,
}

fn pixel_backdrop(sensor: Sensor, objective: vec4u, pixel: Pixel) -> Backdrop {
    if sensor.backdrop == BACKDROP_RANDOM {
        return Backdrop(random_backdrop(objective, pixel), true);
    }
    return Backdrop(vec3f(0.0), false);
}

// The weight of the linear loss for a channel of a batch's pixel: 1 for `seed` 0, else uniform in [-1, 1).
fn linear_weight(seed: u32, index: u32, channel: u32) -> f32 {
    if seed == 0u {
        return 1.0;
    }
    let key = vec4u(seed, LINEAR_WEIGHT, 0u, 0u);
    return 2.0 * random_uniform(key, Counter(0u, index, channel, 0u)).x - 1.0;
}

// The first block of a sample's random numbers: its film position (x, y), and the jitter of a march (z).
fn film_numbers(key: vec4u, counter: Counter) -> vec4f {
    // Rays through a field are as a rule single samples of randomly drawn pixels: there is nothing to stratify.
    if scene.has_field == 0u {
        return stratified_uniform(key, counter);
    }
    return random_uniform(key, counter);
}

// A sample's ray, its jitter, and the weight of its radiance in its pixel.
struct Sampled {
    ray: Ray,
    jitter: f32,
    weight: f32,
}

// One sample of a pixel.
fn sample_ray(sensor: Sensor, pixel: Pixel, key: vec4u, sample: u32) -> Sampled {
    let counter = Counter(pixel.sensor, pixel.index, sample, 0u);
    let u = film_numbers(key, counter);
    let column = pixel.index % sensor.width;
    let row = pixel.index / sensor.width;
    let x = filter_sample(sensor, column, sensor.width, u.x);
    let y = filter_sample(sensor, row, sensor.height, u.y);
    let weight = x.weight * y.weight * sensor_weight(sensor);
    if sensor.kind == SENSOR_PERSPECTIVE {
        return Sampled(camera_ray(sensor, x.position, y.position), u.z, weight);
    }
    let lens = random_uniform(key, Counter(pixel.sensor, pixel.index, sample, LENS));
    return Sampled(sensor_ray(sensor, x.position, y.position, lens), u.z, weight);
}
