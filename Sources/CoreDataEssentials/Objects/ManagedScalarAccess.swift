/// Writes the functions of ``ManagedPropertyValue`` and ``ManagedScalar`` for a type whose values lie in the words of a row.
///
/// The functions have the same text for each type, but have to be functions of the type itself. Other modules call
/// them. A default in an extension of the protocol would be a generic function there, which looks up `WordValue` at
/// each access. The functions are inlined only into this module. So the optimiser keeps them whole, and no call goes
/// through a second function.
@attached(
    member,
    names: named(managedRead),
    named(managedGlance),
    named(managedGlanceOptional),
    named(managedGlanceWrite),
    named(managedWrite),
    named(managedReadOptional),
    named(managedWriteOptional)
)
macro ManagedScalarAccess() = #externalMacro(module: "StrataMacros", type: "ManagedScalarAccessMacro")
