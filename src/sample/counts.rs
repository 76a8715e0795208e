//! Counts that only grow, and by how much they grew between two samples.

/// Implements `since` and `plus` for a type of counts.
macro_rules! counts {
    ($type:ident: $($count:ident),+) => {
        impl $type {
            /// Returns the growth since an older value, or since 0 without one; `None` if a count went backwards.
            /// Fields that are not counts keep their present value.
            pub fn since(self, older: Option<Self>) -> Option<Self> {
                let older = older.unwrap_or_default();
                let mut grown = self;
                $(grown.$count = self.$count.checked_sub(older.$count)?;)+
                Some(grown)
            }

            /// Returns the sum of both. Fields that are not counts are those of `more`.
            #[must_use]
            pub fn plus(self, more: Self) -> Self {
                let mut sum = more;
                $(sum.$count = self.$count.saturating_add(more.$count);)+
                sum
            }
        }
    };
}

pub(super) use counts;
