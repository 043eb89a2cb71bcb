/// The model of a context, and the entity that was needed last.
struct ContextModel {
    /// The coordinator's model.
    ///
    /// It is immortal, and it is read for every object, so no references are counted.
    unowned(unsafe) let frozen: FrozenModel?
    /// The class of the last object that was made, and its entity.
    var lastInsertion: (type: NSManagedObject.Type, entity: NSEntityDescription)?

    /// Makes the part from the model of a coordinator; without an argument there is no model.
    init(_ frozen: FrozenModel? = nil) { self.frozen = frozen }
}
