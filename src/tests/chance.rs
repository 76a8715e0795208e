//! Pseudo-random numbers that are the same on every machine.

/// xorshift64*; the seed must not be 0.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// Returns a number from 0 up to, but not including, 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let number = (self.next() * end as f64) as usize;
        number.min(end - 1)
    }
}
