/// Writes the functions of ``ManagedPropertyValue`` and ``ManagedScalar`` for a type whose values lie in the words of a row.
///
/// They are the same text for each type, and still have to be functions of the type itself. Other modules call them, and a
/// default in an extension of the protocol would be a generic function there, which looks up `WordValue` at each access. The
/// functions are inlined only into this module, so the optimiser leaves them whole, and no call goes through a second one.
@attached(
    member,
    names: named(managedRead),
    named(managedWrite),
    named(managedReadOptional),
    named(managedWriteOptional)
)
macro ManagedScalarAccess() = #externalMacro(module: "StrataMacros", type: "ManagedScalarAccessMacro")
