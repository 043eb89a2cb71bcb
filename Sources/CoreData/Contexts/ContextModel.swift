/// The model of a context, and which of its entities was needed last.
struct ContextModel {
    /// The coordinator's model, which is immortal: asked for with every object, so it is not counted.
    unowned(unsafe) let frozen: FrozenModel?
    /// The class of the last object that was made, and its entity.
    var lastInsertion: (type: NSManagedObject.Type, entity: NSEntityDescription)?

    /// The model of a coordinator, or of none.
    init(_ frozen: FrozenModel? = nil) { self.frozen = frozen }
}
