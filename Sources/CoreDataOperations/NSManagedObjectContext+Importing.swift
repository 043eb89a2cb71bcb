import CoreDataEssentials

extension NSManagedObjectContext {
    /// Turns off validation for all saves of the context, for imports that relate objects after they were saved.
    package final func savesWithoutValidation() { settings.savesUnvalidated = true }
}
