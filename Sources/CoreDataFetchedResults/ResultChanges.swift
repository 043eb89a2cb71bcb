import CoreDataEssentials
import StrataPredicates

/// The changes that one event has made to a controller's results, in the form that a delegate receives.
///
/// Old places are those before all changes, new places are those after all changes.
struct ResultChanges {
    /// The place of an entry: its section, and its row in it.
    struct Place {
        let section: ResultSection
        let row: Int
    }

    /// The change of one object.
    struct Change {
        let entry: ResultEntry
        let type: NSFetchedResultsChangeType
        var old: IndexPath?
        var new: IndexPath?
    }

    /// An entry that was looked at, with its former place.
    struct Touched {
        let entry: ResultEntry
        /// The former place; `nil` for an entry that was not in the results.
        let old: Place?
        /// The former place of the entry's section among all sections.
        let oldSection: Int
        /// Whether the entry was taken out and put in again, so that it may have moved.
        var mayHaveMoved = true
        /// Whether the object itself has changed, so that the entry is reported as updated if it keeps its place.
        var hasChanged = true

        init(_ entry: ResultEntry, old: Place?, mayHaveMoved: Bool = true, hasChanged: Bool = true) {
            self.entry = entry
            self.old = old
            oldSection = old?.section.index ?? -1
            self.mayHaveMoved = mayHaveMoved
            self.hasChanged = hasChanged
        }
    }

    /// The deleted sections with their old places, the last first.
    private(set) var deletedSections: [(section: ResultSection, index: Int)] = []
    /// The inserted sections with their new places.
    private(set) var insertedSections: [(section: ResultSection, index: Int)] = []
    /// The changes of objects: deletions from the last to the first, insertions from the first to the last, then
    /// moves and updates.
    private(set) var objects: [Change] = []

    var isEmpty: Bool { deletedSections.isEmpty && insertedSections.isEmpty && objects.isEmpty }

    /// Compares touched entries and the sections with the present contents of `list`.
    ///
    /// - Parameters:
    ///   - touched: All entries whose place relative to the others may have changed, and all updated entries.
    ///   - formerSections: The sections before the change; `nil` if the list of sections is the same.
    ///   - list: The results after the change.
    ///
    /// - Complexity: O(*k* log *n*) for the *k* touched entries, and O(number of sections) if that list has changed.
    init(_ touched: [Touched], formerSections: [ResultSection]?, list: ResultList) {
        let new: [Place?] = touched.map { touched in
            touched.entry.section.map { Place(section: $0, row: $0.entries.place(of: touched.entry)) }
        }
        let moved = formerSections.map { compareSections($0, with: list.sections, touched: touched, new: new) } ?? []
        compareObjects(touched, new, movedSections: moved)
    }

    // MARK: - Sections

    /// Notes the deleted and inserted sections.
    ///
    /// - Returns: The sections that are reported as deleted and inserted because they are in another order now.
    private mutating func compareSections(
        _ former: [ResultSection],
        with current: [ResultSection],
        touched: [Touched],
        new: [Place?]
    ) -> Set<ObjectIdentifier> {
        var newcomers: [ObjectIdentifier: (section: ResultSection, count: Int)] = [:]
        for (touched, place) in zip(touched, new) where touched.mayHaveMoved {
            guard let section = place?.section else { continue }
            newcomers[ObjectIdentifier(section), default: (section, 0)].count += 1
        }
        deletedSections = former.filter { $0.index < 0 }.map { ($0, $0.formerIndex) }
        insertedSections = current.filter { $0.formerIndex < 0 }.map { ($0, $0.index) }
        // If no entry of a section stayed where it was, then the section may have changed places with others.
        let movers = newcomers.values.map(\.section)
            .filter { $0.formerIndex >= 0 && newcomers[ObjectIdentifier($0)]?.count == $0.entries.count }
        let keepers = KeptOrder.keepers(
            among: movers.map { ($0.formerIndex, $0.index) },
            gone: deletedSections.map(\.index) + movers.map(\.formerIndex),
            come: insertedSections.map(\.index) + movers.map(\.index)
        )
        var moved: Set<ObjectIdentifier> = []
        for (index, section) in movers.enumerated() where !keepers.contains(index) {
            moved.insert(ObjectIdentifier(section))
            deletedSections.append((section, section.formerIndex))
            insertedSections.append((section, section.index))
        }
        deletedSections.sort { $0.index > $1.index }
        insertedSections.sort { $0.index < $1.index }
        return moved
    }

    // MARK: - Objects

    private mutating func compareObjects(
        _ touched: [Touched],
        _ new: [Place?],
        movedSections: Set<ObjectIdentifier>
    ) {
        let keepers = keepers(among: touched, new: new, movedSections: movedSections)
        var deleted: [Change] = []
        var inserted: [Change] = []
        var moved: [Change] = []
        var updated: [Change] = []
        for (index, touched) in touched.enumerated() {
            let from = touched.old.map { IndexPath(indexes: [touched.oldSection, $0.row]) }
            let to = new[index].map { IndexPath(indexes: [$0.section.index, $0.row]) }
            func change(_ type: NSFetchedResultsChangeType) -> Change {
                Change(entry: touched.entry, type: type, old: from, new: to)
            }
            switch (from, to) {
            case (nil, nil): break
            case (nil, _): inserted.append(change(.insert))
            case (_, nil): deleted.append(change(.delete))
            default:
                if touched.mayHaveMoved, !keepers.contains(index) {
                    moved.append(change(.move))
                } else if touched.hasChanged {
                    updated.append(change(.update))
                }
            }
        }
        deleted.sort { lhs, rhs in lhs.old.map { old in rhs.old.map { $0 < old } ?? false } ?? false }
        inserted.sort { lhs, rhs in lhs.new.map { new in rhs.new.map { new < $0 } ?? false } ?? false }
        objects = deleted + inserted + moved + updated
    }

    /// The touched entries, by position, that have kept their place relative to the untouched ones.
    private func keepers(
        among touched: [Touched],
        new: [Place?],
        movedSections: Set<ObjectIdentifier>
    ) -> Set<Int> {
        struct Part {
            var movers: [(old: Int, new: Int)] = []
            var positions: [Int] = []
            var gone: [Int] = []
            var come: [Int] = []
        }
        var parts: [ObjectIdentifier: Part] = [:]
        for (index, touched) in touched.enumerated() where touched.mayHaveMoved {
            if let old = touched.old { parts[ObjectIdentifier(old.section), default: Part()].gone.append(old.row) }
            if let place = new[index] { parts[ObjectIdentifier(place.section), default: Part()].come.append(place.row) }
            guard let old = touched.old, let place = new[index], old.section === place.section else { continue }
            let id = ObjectIdentifier(place.section)
            guard !movedSections.contains(id) else { continue }
            parts[id]?.movers.append((old.row, place.row))
            parts[id]?.positions.append(index)
        }
        var result: Set<Int> = []
        for part in parts.values {
            for keeper in KeptOrder.keepers(among: part.movers, gone: part.gone, come: part.come) {
                result.insert(part.positions[keeper])
            }
        }
        return result
    }
}
