//! Projection of points to pixels.

use glam::{DVec2, DVec3};

use super::{Distortion, View};

impl Distortion {
    /// Applies the lens distortion to a point of the image plane at distance 1, +X right and +Y down (OpenCV's
    /// `projectPoints` and `fisheye::projectPoints`).
    pub fn apply(&self, p: DVec2) -> DVec2 {
        match *self {
            Distortion::None => p,
            Distortion::Brown { k, p: t } => {
                let [k1, k2, k3] = k.map(f64::from);
                let [p1, p2] = t.map(f64::from);
                let r2 = p.length_squared();
                let radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3));
                let xy = 2.0 * p.x * p.y;
                let tangential = DVec2::new(
                    p1 * xy + p2 * (r2 + 2.0 * p.x * p.x),
                    p1 * (r2 + 2.0 * p.y * p.y) + p2 * xy,
                );
                p * radial + tangential
            }
            Distortion::Fisheye { k } => {
                let r = p.length();
                if r == 0.0 {
                    return p;
                }
                let [k1, k2, k3, k4] = k.map(f64::from);
                let theta = r.atan();
                let t2 = theta * theta;
                p * (theta * (1.0 + t2 * (k1 + t2 * (k2 + t2 * (k3 + t2 * k4)))) / r)
            }
        }
    }
}

impl View {
    /// Projects a point of the data set's world to pixels from the image's top left corner, with its depth; `None`
    /// behind the camera. The pixel may lie outside the image.
    pub fn project(&self, point: DVec3) -> Option<(DVec2, f64)> {
        let axes = self.to_world.matrix3.as_dmat3();
        let local = axes.transpose() * (point - self.position());
        if local.z <= 0.0 {
            return None;
        }
        let plane = DVec2::new(-local.x, -local.y) / local.z;
        let [fx, fy] = self.focal.map(f64::from);
        let [cx, cy] = self.center.map(f64::from);
        Some((
            self.distortion.apply(plane) * DVec2::new(fx, fy) + DVec2::new(cx, cy),
            local.z,
        ))
    }

    /// The camera's position.
    pub fn position(&self) -> DVec3 {
        self.to_world.translation.as_dvec3()
    }

    /// The direction of its optical axis.
    pub fn forward(&self) -> DVec3 {
        self.to_world.matrix3.z_axis.as_dvec3()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Affine3A;

    #[test]
    fn left_is_left_and_up_is_up() {
        let view = View {
            name: String::new(),
            image: Default::default(),
            to_world: Affine3A::IDENTITY,
            width: 200,
            height: 100,
            focal: [100.0, 50.0],
            center: [110.0, 40.0],
            distortion: Distortion::None,
        };
        let (pixel, depth) = view.project(DVec3::new(0.5, 0.25, 2.0)).expect("in front");
        assert_eq!((pixel, depth), (DVec2::new(85.0, 33.75), 2.0));
        assert_eq!(view.project(DVec3::new(0.0, 0.0, -1.0)), None);
    }

    #[test]
    fn distortions_follow_the_polynomials() {
        let p = DVec2::new(0.3, -0.2);
        let brown = Distortion::Brown {
            k: [0.1, 0.01, 0.0],
            p: [0.02, -0.03],
        };
        let (r2, x, y) = (0.13, 0.3, -0.2);
        let radial = 1.0 + 0.1 * r2 + 0.01 * r2 * r2;
        let expected = DVec2::new(
            x * radial + 2.0 * 0.02 * x * y - 0.03 * (r2 + 2.0 * x * x),
            y * radial + 0.02 * (r2 + 2.0 * y * y) - 2.0 * 0.03 * x * y,
        );
        assert!((brown.apply(p) - expected).length() < 1e-7);
        let fisheye = Distortion::Fisheye { k: [0.0; 4] };
        assert!((fisheye.apply(DVec2::new(1.0, 0.0)).x - std::f64::consts::FRAC_PI_4).abs() < 1e-12);
    }

    #[test]
    fn what_is_behind_or_beside_the_camera_has_no_pixel() {
        let view = View {
            name: String::new(),
            image: Default::default(),
            to_world: Affine3A::IDENTITY,
            width: 2,
            height: 2,
            focal: [1.0; 2],
            center: [1.0; 2],
            distortion: Distortion::None,
        };
        assert_eq!(view.project(DVec3::new(1.0, 0.0, 0.0)), None);
        assert_eq!(
            view.project(DVec3::new(1.0, 0.0, 1e-6)).map(|(_, depth)| depth),
            Some(1e-6)
        );
        let fisheye = Distortion::Fisheye { k: [0.5; 4] };
        assert_eq!(fisheye.apply(DVec2::ZERO), DVec2::ZERO);
    }
}
