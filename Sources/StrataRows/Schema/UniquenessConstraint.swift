/// Properties of an entity whose values no two rows may share.
package struct UniquenessConstraint: Sendable {
    /// The names of the properties, as the model declares them.
    package let properties: [String]
    /// The slots of the properties: one for each, or those of all elements of a composite attribute.
    package let slots: [Slot]
}
