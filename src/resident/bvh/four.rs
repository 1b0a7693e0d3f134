//! Vectors of four f32 for the builder: a corner of a box, with a primitive's number in the fourth lane.

#[cfg(target_arch = "x86_64")]
mod sse {
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
        /// Truncated to integers; a number that does not fit, and NaN, become the least integer.
        #[inline(always)]
        pub(in crate::resident::bvh) fn truncate(self) -> [i32; 4] {
            unsafe { std::mem::transmute(_mm_cvttps_epi32(self.0)) }
        }
        /// Bit mask of the lanes that are less than those of `o`.
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
#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain {
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
            self.0.map(|v| if v < 2147483648.0 { v as i32 } else { i32::MIN })
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

#[cfg(not(target_arch = "x86_64"))]
pub(super) use plain::Four;
#[cfg(target_arch = "x86_64")]
pub(super) use sse::Four;

#[cfg(test)]
mod tests {
    /// The values that both forms compute, lane by lane; comparisons with NaN are false and give the second operand.
    macro_rules! known {
        ($name:ident, $form:ident) => {
            #[test]
            fn $name() {
                use super::$form::Four;
                let a = Four::new([1.5, -2.0, 3.0, 8.0]);
                let b = Four::new([0.5, 4.0, 3.0, -1.0]);
                assert_eq!(a.array(), [1.5, -2.0, 3.0, 8.0]);
                assert_eq!(Four::splat(-0.25).array(), [-0.25; 4]);
                assert_eq!(a.min(b).array(), [0.5, -2.0, 3.0, -1.0]);
                assert_eq!(a.max(b).array(), [1.5, 4.0, 3.0, 8.0]);
                assert_eq!(a.add(b).array(), [2.0, 2.0, 6.0, 7.0]);
                assert_eq!(a.sub(b).array(), [1.0, -6.0, 0.0, 9.0]);
                assert_eq!(a.mul(b).array(), [0.75, -8.0, 9.0, -8.0]);
                assert_eq!((a.lt(b), b.lt(a), a.lt(a)), (0b0010, 0b1001, 0));
                // 1.5 · -2 - 2 · 3 + 3 · 1.5; the fourth lane does not count.
                assert_eq!(a.pairs(), -4.5);
                assert_eq!(Four::new([2.0, 5.0, 11.0, 1e9]).pairs(), 10.0 + 55.0 + 22.0);
                assert_eq!(Four::new([2.9, -2.9, 0.0, -0.5]).truncate(), [2, -2, 0, 0]);
                let limit = 2147483648.0;
                let far = Four::new([limit, -limit, 2147483520.0, f32::NAN]);
                assert_eq!(far.truncate(), [i32::MIN, i32::MIN, 2147483520, i32::MIN]);
                let beyond = Four::new([f32::INFINITY, f32::NEG_INFINITY, 3e9, -3e9]);
                assert_eq!(beyond.truncate(), [i32::MIN; 4]);
                let nan = Four::splat(f32::NAN);
                assert_eq!(
                    (nan.min(a).array(), nan.max(a).array(), nan.lt(a)),
                    (a.array(), a.array(), 0)
                );
                // 0 and -0 are equal, so that the second operand is returned, to the bit.
                let signed = [Four::splat(0.0), Four::splat(-0.0)];
                assert!(signed[0].min(signed[1]).array()[0].is_sign_negative());
                assert!(signed[0].max(signed[1]).array()[3].is_sign_negative());
            }
        };
    }

    #[cfg(target_arch = "x86_64")]
    known!(vectors_are_known, sse);
    known!(plain_arrays_are_the_same, plain);
}
