//! Counts that only grow, and how far they grew from one sample to another.

/// Gives a type of counts `since`.
macro_rules! counts {
    ($type:ident: $($count:ident),+) => {
        impl $type {
            /// How far it grew since an older one, without which it counts from 0; `None` where a count went backwards.
            /// What is not counted stays as it is now.
            pub fn since(self, older: Option<Self>) -> Option<Self> {
                let older = older.unwrap_or_default();
                let mut grown = self;
                $(grown.$count = self.$count.checked_sub(older.$count)?;)+
                Some(grown)
            }
        }
    };
}

pub(super) use counts;
