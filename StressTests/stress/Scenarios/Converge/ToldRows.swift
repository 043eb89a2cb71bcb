import CoreData

/// The sections of a results controller, computed from the changes that its delegate gets.
///
/// Each change is applied to the rows before it. The result must be what the controller shows.
final class ToldRows: NSObject, NSFetchedResultsControllerDelegate {
    private var sections: [[NSManagedObjectID]] = []
    private var gone: [IndexPath] = []
    private var come: [(path: IndexPath, id: NSManagedObjectID)] = []
    private var goneSections: [Int] = []
    private var comeSections: [Int] = []
    private let name: String
    private let run: Run

    init(_ name: String, _ run: Run) { (self.name, self.run) = (name, run) }

    /// Begins with the sections that the controller has fetched.
    func begin(with infos: [any NSFetchedResultsSectionInfo]?) { sections = Self.rows(infos) }

    private static func rows(_ infos: [any NSFetchedResultsSectionInfo]?) -> [[NSManagedObjectID]] {
        (infos ?? []).map { ($0.objects ?? []).compactMap { ($0 as? NSManagedObject)?.objectID } }
    }

    func controllerWillChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>) {
        (gone, come, goneSections, comeSections) = ([], [], [], [])
    }

    func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        didChange anObject: Any,
        at indexPath: IndexPath?,
        for type: NSFetchedResultsChangeType,
        newIndexPath: IndexPath?
    ) {
        guard type != .update else { return }
        if let indexPath { gone.append(indexPath) }
        if let newIndexPath, let object = anObject as? NSManagedObject { come.append((newIndexPath, object.objectID)) }
    }

    func controller(
        _ controller: NSFetchedResultsController<NSFetchRequestResult>,
        didChange sectionInfo: any NSFetchedResultsSectionInfo,
        atSectionIndex sectionIndex: Int,
        for type: NSFetchedResultsChangeType
    ) {
        if type == .delete { goneSections.append(sectionIndex) } else { comeSections.append(sectionIndex) }
    }

    func controllerDidChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>) {
        run.count("controller-changes")
        let shown = Self.rows(controller.sections)
        if run.isSabotaged("wrong-row"), !come.isEmpty { come.removeLast() }
        if !apply() || sections != shown {
            run.find("\(name): the controller shows other rows than what it was told make of those before")
        }
        sections = shown
    }

    /// Makes the new rows out of the old ones; false if a path does not exist.
    private func apply() -> Bool {
        for path in gone.sorted(by: >) {
            guard sections.indices.contains(path.section), sections[path.section].indices.contains(path.item) else {
                return false
            }
            sections[path.section].remove(at: path.item)
        }
        for section in goneSections.sorted(by: >) {
            // Its rows were removed before, or have moved.
            guard sections.indices.contains(section), sections[section].isEmpty else { return false }
            sections.remove(at: section)
        }
        for section in comeSections.sorted() {
            guard section <= sections.count else { return false }
            sections.insert([], at: section)
        }
        for (path, id) in come.sorted(by: { $0.path < $1.path }) {
            guard sections.indices.contains(path.section), path.item <= sections[path.section].count else {
                return false
            }
            sections[path.section].insert(id, at: path.item)
        }
        return true
    }
}
