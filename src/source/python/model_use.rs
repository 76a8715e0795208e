//! What a stack shows of a model. Does not know whose stack it is.

use super::frame::Frame;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelUse {
    #[default]
    Nothing,
    /// It is in a layer of a model.
    Infers,
    /// It does what only training does.
    Trains,
}

impl ModelUse {
    pub(super) fn of(frames: &[Frame]) -> Self {
        if frames.iter().any(|frame| frame.code.meaning.trains) {
            Self::Trains
        } else if frames.iter().any(|frame| frame.code.meaning.layer) {
            Self::Infers
        } else {
            Self::Nothing
        }
    }
}
