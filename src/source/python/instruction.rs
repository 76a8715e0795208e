//! What an instruction of Python's bytecode does, as far as it matters here. Does not know their numbers.

/// What an instruction does with the value stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StackUse {
    /// Any other effect; does not occur in the simple arguments of a call.
    Other,
    /// Takes a value only to drop it.
    Drop,
    /// Takes a value only to branch on it.
    Test,
    /// Hides another instruction, whose caches are then not known: set by debuggers and coverage.
    Hidden,
    Nothing,
    /// Holds the high byte of the next instruction's argument.
    Extends,
    /// Pushes this many values that have no name here.
    Push(u8),
    /// Pushes the local that its argument says, or the two that the halves of its argument say.
    Local,
    Locals,
    /// Pushes the local that its argument says and unsets it, for a comprehension that uses it.
    ClearedLocal,
    /// Takes a value into a local, or into a name of the module.
    Store,
    StoreName,
    /// Takes values into the two locals that the halves of its argument say.
    Stores,
    /// Takes a value into the local that the high half of its argument says, and pushes the other.
    StoreAndLocal,
    /// Takes a value into an attribute or an item of an object, or into a global.
    StoreInto,
    /// Pushes the placeholder that a plain function has where a method has its object.
    Null,
    /// Pushes the value of a name, which may be a callee.
    Name,
    Global,
    /// Pushes the value of a global; the lowest bit of its argument asks for a [`Self::Null`], too.
    GlobalOrCallee,
    /// Replaces an object by its attribute.
    Attribute,
    /// Replaces an object by its method and itself.
    Method,
    /// [`Self::Method`] if the lowest bit of its argument is set, else [`Self::Attribute`].
    AttributeOrMethod,
    Replace,
    /// Makes one value of two.
    Join,
    /// Makes one value of two if the argument has bit 2, else of one.
    Format,
    /// Makes one value of as many as the argument says.
    Build,
    /// Makes one value of twice as many as the argument says.
    BuildPairs,
    /// Calls with as many arguments as its argument says. `below`, `above`: number of values below the arguments, and
    /// above.
    Call {
        below: u8,
        above: u8,
    },
    /// The first half of a call; may do the whole call.
    BeforeCall,
    /// Calls with a tuple, and a dict if the lowest bit of its argument is set. `below`: number of values below these.
    CallUnpacked {
        below: u8,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) effect: StackUse,
    /// Number of cache units that follow it.
    pub(super) caches: u8,
}
