import CoreData

/// Values that are no number are saved, in new objects and in changed ones.
///
/// A file has no such value: it would keep none, and a required property would be read as zero.
enum UnstorableNumber {
    /// Saves such a value in each way.
    ///
    /// - Throws: Errors other than those of the saves.
    static func run(_ run: Run, _ stack: NSPersistentStoreCoordinator) throws {
        let context = stack.context()
        for isNew in [true, false] {
            try context.performAndWait { () throws in
                let request = NSFetchRequest<Node>(entityName: "Node")
                request.fetchLimit = 1
                guard let node = try isNew ? Node(context: context) : context.fetch(request).first else {
                    throw StressError("there is no node")
                }
                node.share = .nan
                do {
                    try context.save()
                    run.find("a value that is no number was saved in \(isNew ? "a new" : "a stored") object")
                } catch let error as CocoaError where error.code == .managedObjectValidation {
                    run.count("unstorable-numbers")
                } catch {
                    run.find("saving a value that is no number gave \(describe(error))")
                }
                context.reset()
            }
        }
    }
}
