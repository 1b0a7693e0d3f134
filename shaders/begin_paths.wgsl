// The first kernel of a wave of paths, and of its replay: camera rays. One path per invocation; the samples of a pixel are
// neighbours.

#import bind/launch
#import bind/wave
#import transport/paths/wave_path
#import transport/rays/pixel

#ifdef GATHERS
@group(0) @binding(9) var<storage, read> adjoint_image: array<vec4f>;
#endif

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let at = (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if at >= wave_paths() {
        return;
    }
    let samples = launch.last_sample - launch.first_sample;
    let index = launch.first_pixel + at / samples;
    let sample = launch.first_sample + at % samples;
#ifdef GATHERS
    if all(adjoint_image[index].xyz == vec3f(0.0)) {
        wave_keep(at, WAVE_FLAGS, IS_MASKED);
        return;
    }
#endif
    let pixel = batch_pixel(index);
    var sensor = sensors[pixel.sensor];
    if launch.exposure == EXPOSURE_SAMPLE {
        sensor = spread_sensor(sensor);
    }
    let sampled = sample_ray(sensor, pixel, pass_key(), sample);
    if !sampled.ray.valid {
        wave_keep(at, WAVE_FLAGS, IS_MASKED);
        return;
    }
    var sampler = sampler_new(Counter(pixel.sensor, pixel.index, sample, WALK));
    var path = path_new(sampled.ray, sensor.medium, &sampler);
    wave_keep_number(at, WAVE_WEIGHT, sampled.weight);
    wave_keep(at, WAVE_COUNTER, sampler.counter.sensor);
    wave_keep(at, WAVE_COUNTER + 1u, sampler.counter.pixel);
    wave_keep(at, WAVE_COUNTER + 2u, sampler.counter.sample);
#ifdef REPLAYS
    wave_keep_vector(at, WAVE_GATHERED, wave_vector(at, WAVE_RADIANCE));
    wave_keep(at, WAVE_COUNT, 0u);
#else
    wave_keep_vector(at, WAVE_RADIANCE, vec3f(0.0));
#ifdef GATHERS
    wave_keep_vector(at, WAVE_RADIANCE_LOW, vec3f(0.0));
    wave_keep_vector(at, WAVE_BUT_ZERO, vec3f(0.0));
#endif
#endif
    keep_path(at, &path, sampler, GOES_ON);
}
