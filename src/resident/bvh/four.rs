//! Vectors of four floats for the builder: a corner of a box and a number that rides along in the fourth lane.

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::x86_64::*;

    #[derive(Clone, Copy, Debug)]
    #[repr(transparent)]
    pub(in crate::resident::bvh) struct Four(__m128);

    // SAFETY of the calls below: SSE2 is part of x86-64.
    #[allow(clippy::undocumented_unsafe_blocks, reason = "one reason above for all")]
    impl Four {
        #[inline(always)]
        pub(in crate::resident::bvh) fn new(v: [f32; 4]) -> Self {
            Self(unsafe { _mm_setr_ps(v[0], v[1], v[2], v[3]) })
        }
        #[inline(always)]
        pub(in crate::resident::bvh) fn splat(v: f32) -> Self {
            Self(unsafe { _mm_set1_ps(v) })
        }
        #[inline(always)]
        pub(in crate::resident::bvh) fn array(self) -> [f32; 4] {
            unsafe { std::mem::transmute(self.0) }
        }
        #[inline(always)]
        pub(in crate::resident::bvh) fn min(self, o: Self) -> Self {
            Self(unsafe { _mm_min_ps(self.0, o.0) })
        }
        #[inline(always)]
        pub(in crate::resident::bvh) fn max(self, o: Self) -> Self {
            Self(unsafe { _mm_max_ps(self.0, o.0) })
        }
        #[inline(always)]
        pub(in crate::resident::bvh) fn add(self, o: Self) -> Self {
            Self(unsafe { _mm_add_ps(self.0, o.0) })
        }
        #[inline(always)]
        pub(in crate::resident::bvh) fn sub(self, o: Self) -> Self {
            Self(unsafe { _mm_sub_ps(self.0, o.0) })
        }
        #[inline(always)]
        pub(in crate::resident::bvh) fn mul(self, o: Self) -> Self {
            Self(unsafe { _mm_mul_ps(self.0, o.0) })
        }
        /// Integers towards zero; what does not fit is the least integer.
        #[inline(always)]
        pub(in crate::resident::bvh) fn truncate(self) -> [i32; 4] {
            unsafe { std::mem::transmute(_mm_cvttps_epi32(self.0)) }
        }
        /// Bits of the lanes that are less.
        #[inline(always)]
        pub(in crate::resident::bvh) fn lt(self, o: Self) -> u32 {
            unsafe { _mm_movemask_ps(_mm_cmplt_ps(self.0, o.0)) as u32 }
        }
        /// x y + y z + z x.
        #[inline(always)]
        pub(in crate::resident::bvh) fn pairs(self) -> f32 {
            unsafe {
                let p = _mm_mul_ps(self.0, _mm_shuffle_ps::<0b11_00_10_01>(self.0, self.0));
                let y = _mm_shuffle_ps::<0b01_01_01_01>(p, p);
                let z = _mm_shuffle_ps::<0b10_10_10_10>(p, p);
                _mm_cvtss_f32(_mm_add_ss(_mm_add_ss(p, y), z))
            }
        }
    }
}

/// The same as plain arrays.
#[cfg(not(target_arch = "x86_64"))]
mod arch {
    #[derive(Clone, Copy, Debug)]
    pub(in crate::resident::bvh) struct Four([f32; 4]);

    impl Four {
        pub(in crate::resident::bvh) fn new(v: [f32; 4]) -> Self {
            Self(v)
        }
        pub(in crate::resident::bvh) fn splat(v: f32) -> Self {
            Self([v; 4])
        }
        pub(in crate::resident::bvh) fn array(self) -> [f32; 4] {
            self.0
        }
        fn zip(self, o: Self, f: impl Fn(f32, f32) -> f32) -> Self {
            Self(std::array::from_fn(|i| f(self.0[i], o.0[i])))
        }
        pub(in crate::resident::bvh) fn min(self, o: Self) -> Self {
            self.zip(o, |a, b| if a < b { a } else { b })
        }
        pub(in crate::resident::bvh) fn max(self, o: Self) -> Self {
            self.zip(o, |a, b| if a > b { a } else { b })
        }
        pub(in crate::resident::bvh) fn add(self, o: Self) -> Self {
            self.zip(o, |a, b| a + b)
        }
        pub(in crate::resident::bvh) fn sub(self, o: Self) -> Self {
            self.zip(o, |a, b| a - b)
        }
        pub(in crate::resident::bvh) fn mul(self, o: Self) -> Self {
            self.zip(o, |a, b| a * b)
        }
        pub(in crate::resident::bvh) fn truncate(self) -> [i32; 4] {
            let fits = |v: f32| v > -2147483648.0 && v < 2147483648.0;
            self.0.map(|v| if fits(v) { v as i32 } else { i32::MIN })
        }
        pub(in crate::resident::bvh) fn lt(self, o: Self) -> u32 {
            (0..4).map(|i| u32::from(self.0[i] < o.0[i]) << i).sum()
        }
        pub(in crate::resident::bvh) fn pairs(self) -> f32 {
            let [x, y, z, _] = self.0;
            x * y + y * z + z * x
        }
    }
}

pub(super) use arch::Four;
