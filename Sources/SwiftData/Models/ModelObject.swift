import CoreData

/// The managed object of a model object.
final class ModelObject: NSManagedObject {
    /// The model object, which lives as long as the program or an unsaved change holds it; used inside the scope of the
    /// context.
    weak var model: AnyObject?
}
