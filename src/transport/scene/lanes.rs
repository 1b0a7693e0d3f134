//! SIMD vectors of floats behind one trait for all instruction sets. No operation is fused and each rounds as IEEE 754
//! prescribes, so that all instruction sets give identical bits.

/// `N` floats.
pub trait Lanes<const N: usize>: Copy {
    fn load(values: &[f32; N]) -> Self;
    fn splat(value: f32) -> Self;
    fn store(self) -> [f32; N];
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// The smaller; `other` where one is not a number or both are zero.
    fn min(self, other: Self) -> Self;
    /// The larger; `other` where one is not a number or both are zero.
    fn max(self, other: Self) -> Self;
    fn abs(self) -> Self;
    /// A bit for each lane that is less than or equal.
    fn le(self, other: Self) -> u32;
    /// A bit for each lane that is less.
    fn lt(self, other: Self) -> u32;
    /// These lanes, with zero where a ≤ b.
    fn clear_where_le(self, a: Self, b: Self) -> Self;
    /// The sign bits.
    fn signs(self) -> u32;
}

/// Arrays, which the compiler vectorises for the target.
#[derive(Debug, Clone, Copy)]
pub struct Plain<const N: usize>([f32; N]);

impl<const N: usize> Plain<N> {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self.0;
        for i in 0..N {
            out[i] = f(self.0[i], other.0[i]);
        }
        Self(out)
    }

    #[inline(always)]
    fn bits(self, other: Self, f: impl Fn(f32, f32) -> bool) -> u32 {
        let mut bits = 0;
        for i in 0..N {
            bits |= u32::from(f(self.0[i], other.0[i])) << i;
        }
        bits
    }
}

impl<const N: usize> Lanes<N> for Plain<N> {
    #[inline(always)]
    fn load(values: &[f32; N]) -> Self {
        Self(*values)
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self([value; N])
    }
    #[inline(always)]
    fn store(self) -> [f32; N] {
        self.0
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self.zip(self, |a, _| a.abs())
    }
    #[inline(always)]
    fn le(self, other: Self) -> u32 {
        self.bits(other, |a, b| a <= b)
    }
    #[inline(always)]
    fn lt(self, other: Self) -> u32 {
        self.bits(other, |a, b| a < b)
    }
    #[inline(always)]
    fn clear_where_le(self, a: Self, b: Self) -> Self {
        let mut out = self.0;
        for i in 0..N {
            if a.0[i] <= b.0[i] {
                out[i] = 0.0;
            }
        }
        Self(out)
    }
    #[inline(always)]
    fn signs(self) -> u32 {
        self.bits(self, |a, _| a.is_sign_negative())
    }
}

/// Registers of x86-64. Methods are inlined into functions that are compiled for the instruction set.
#[cfg(target_arch = "x86_64")]
pub mod x86 {
    use std::arch::x86_64::*;

    use super::Lanes;

    macro_rules! lanes {
        ($name:ident, $n:literal, $register:ty, $doc:literal, $load:ident, $set1:ident, $store:ident, $add:ident,
         $sub:ident, $mul:ident, $div:ident, $min:ident, $max:ident, $andnot:ident, $movemask:ident, $cmp:expr) => {
            #[doc = $doc]
            #[derive(Debug, Clone, Copy)]
            pub struct $name($register);

            // SAFETY of the calls below: values of this type are made and used only where the instructions exist, and
            // arrays have as many floats as a register.
            impl Lanes<$n> for $name {
                #[inline(always)]
                fn load(values: &[f32; $n]) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $load(values.as_ptr()) })
                }
                #[inline(always)]
                fn splat(value: f32) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $set1(value) })
                }
                #[inline(always)]
                fn store(self) -> [f32; $n] {
                    let mut out = [0.0; $n];
                    // SAFETY: as above.
                    unsafe { $store(out.as_mut_ptr(), self.0) };
                    out
                }
                #[inline(always)]
                fn add(self, other: Self) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $add(self.0, other.0) })
                }
                #[inline(always)]
                fn sub(self, other: Self) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $sub(self.0, other.0) })
                }
                #[inline(always)]
                fn mul(self, other: Self) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $mul(self.0, other.0) })
                }
                #[inline(always)]
                fn div(self, other: Self) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $div(self.0, other.0) })
                }
                #[inline(always)]
                fn min(self, other: Self) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $min(self.0, other.0) })
                }
                #[inline(always)]
                fn max(self, other: Self) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $max(self.0, other.0) })
                }
                #[inline(always)]
                fn abs(self) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $andnot($set1(-0.0), self.0) })
                }
                #[inline(always)]
                fn le(self, other: Self) -> u32 {
                    // SAFETY: as above.
                    unsafe { $movemask($cmp(self.0, other.0, true)) as u32 }
                }
                #[inline(always)]
                fn lt(self, other: Self) -> u32 {
                    // SAFETY: as above.
                    unsafe { $movemask($cmp(self.0, other.0, false)) as u32 }
                }
                #[inline(always)]
                fn clear_where_le(self, a: Self, b: Self) -> Self {
                    // SAFETY: as above.
                    Self(unsafe { $andnot($cmp(a.0, b.0, true), self.0) })
                }
                #[inline(always)]
                fn signs(self) -> u32 {
                    // SAFETY: as above.
                    unsafe { $movemask(self.0) as u32 }
                }
            }
        };
    }

    #[inline(always)]
    unsafe fn compare_4(a: __m128, b: __m128, or_equal: bool) -> __m128 {
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            if or_equal {
                _mm_cmple_ps(a, b)
            } else {
                _mm_cmplt_ps(a, b)
            }
        }
    }

    #[inline(always)]
    unsafe fn compare_8(a: __m256, b: __m256, or_equal: bool) -> __m256 {
        // SAFETY: the caller has AVX.
        unsafe {
            if or_equal {
                _mm256_cmp_ps::<_CMP_LE_OQ>(a, b)
            } else {
                _mm256_cmp_ps::<_CMP_LT_OQ>(a, b)
            }
        }
    }

    lanes!(
        Sse,
        4,
        __m128,
        "Four floats; SSE2.",
        _mm_loadu_ps,
        _mm_set1_ps,
        _mm_storeu_ps,
        _mm_add_ps,
        _mm_sub_ps,
        _mm_mul_ps,
        _mm_div_ps,
        _mm_min_ps,
        _mm_max_ps,
        _mm_andnot_ps,
        _mm_movemask_ps,
        compare_4
    );
    lanes!(
        Avx,
        8,
        __m256,
        "Eight floats; AVX.",
        _mm256_loadu_ps,
        _mm256_set1_ps,
        _mm256_storeu_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps,
        _mm256_div_ps,
        _mm256_min_ps,
        _mm256_max_ps,
        _mm256_andnot_ps,
        _mm256_movemask_ps,
        compare_8
    );
}
