//! What an element of keys and values is kept as.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use burn::tensor::f16;
use bytemuck::Pod;

/// An element as it is kept: the bits of a half, or a whole number that a scale goes with.
pub(crate) trait Cell: Pod {
    /// Its value.
    fn wide(self) -> f32;

    /// The values of eight.
    ///
    /// # Safety
    /// The machine has AVX2 and F16C.
    #[cfg(target_arch = "x86_64")]
    unsafe fn eight(row: &[Self; 8]) -> __m256;

    /// The values of sixteen.
    ///
    /// # Safety
    /// The machine has AVX-512 F.
    #[cfg(target_arch = "x86_64")]
    unsafe fn sixteen(row: &[Self; 16]) -> __m512;
}

impl Cell for u16 {
    #[inline(always)]
    fn wide(self) -> f32 {
        f16::from_bits(self).to_f32()
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn eight(row: &[Self; 8]) -> __m256 {
        // SAFETY: the caller has the features; the reference covers the 16 bytes, and the load needs
        // no alignment.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(row.as_ptr().cast())) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn sixteen(row: &[Self; 16]) -> __m512 {
        // SAFETY: the caller has the features; the reference covers the 32 bytes, and the load needs
        // no alignment.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(row.as_ptr().cast())) }
    }
}

impl Cell for i8 {
    #[inline(always)]
    fn wide(self) -> f32 {
        f32::from(self)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn eight(row: &[Self; 8]) -> __m256 {
        // SAFETY: the caller has the features; the reference covers the 8 bytes, and the load needs no
        // alignment.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(row.as_ptr().cast()))) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn sixteen(row: &[Self; 16]) -> __m512 {
        // SAFETY: the caller has the features; the reference covers the 16 bytes, and the load needs
        // no alignment.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(row.as_ptr().cast()))) }
    }
}
