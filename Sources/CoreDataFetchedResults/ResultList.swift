import CoreDataEssentials
import StrataPredicates

/// One section of a controller's results: the entries whose section name is the same.
final class ResultSection {
    let name: String
    var entries = RankedEntries() {
        didSet { knownObjects = nil }
    }
    /// The place among the sections; -1 while the section is not listed.
    fileprivate(set) var index = -1
    /// The place before the list of sections last changed; -1 if the section was not listed.
    fileprivate(set) var formerIndex = -1
    private var knownObjects: [NSManagedObject]?

    init(name: String) { self.name = name }

    /// The objects in order.
    ///
    /// O(n) after a change, else O(1).
    var objects: [NSManagedObject] {
        if let knownObjects { return knownObjects }
        var objects: [NSManagedObject] = []
        objects.reserveCapacity(entries.count)
        entries.forEach { objects.append($0.object) }
        knownObjects = objects
        return objects
    }
}

/// The results of a controller: sections in order, the entries of each in order, and a table from objects to entries.
struct ResultList {
    private(set) var sections: [ResultSection] = []
    /// Whether there are sections by name; otherwise there is exactly one section, which may be empty.
    let hasSections: Bool
    private var sectionsByName: [String: ResultSection] = [:]
    private var entries: [ObjectIdentifier: ResultEntry] = [:]
    private var lastSequence = 0

    init(hasSections: Bool) {
        self.hasSections = hasSections
        guard !hasSections else { return }
        let section = ResultSection(name: "")
        section.index = 0
        section.formerIndex = 0
        sections = [section]
    }

    var count: Int { entries.count }

    func entry(of object: NSManagedObject) -> ResultEntry? { entries[ObjectIdentifier(object)] }

    func forEach(_ body: (ResultEntry) -> Void) {
        for section in sections { section.entries.forEach(body) }
    }

    var last: ResultEntry? { sections.last?.entries.last }

    /// All objects in order.
    ///
    /// O(n).
    var objects: [NSManagedObject] {
        if sections.count == 1 { return sections[0].objects }
        var objects: [NSManagedObject] = []
        objects.reserveCapacity(count)
        forEach { objects.append($0.object) }
        return objects
    }

    // MARK: - Filling

    /// Replaces all entries by those of a fetch, in its order and each with its section's name.
    ///
    /// Sections with the same name are kept. Entries with the same section name are brought together.
    ///
    /// - Returns: The place of the first entry that is apart from the others of its section; `nil` if all sections
    ///   are together.
    @discardableResult
    mutating func fill(_ new: [(entry: ResultEntry, sectionName: String)]) -> Int? {
        for section in sections {
            section.formerIndex = section.index
            section.index = -1
        }
        let known = sectionsByName
        var firstApart: Int?
        var order: [ResultSection] = hasSections ? [] : sections
        var contents: [[ResultEntry]] = hasSections ? [] : [[]]
        if !hasSections { sections[0].index = 0 }
        sectionsByName = [:]
        entries = Dictionary(minimumCapacity: new.count)
        for (place, (entry, name)) in new.enumerated() {
            let section: ResultSection
            if !hasSections {
                section = order[0]
            } else if let found = sectionsByName[name] {
                section = found
                if section.index != order.count - 1, firstApart == nil { firstApart = place }
            } else {
                section = known[name] ?? ResultSection(name: name)
                section.index = order.count
                sectionsByName[name] = section
                order.append(section)
                contents.append([])
            }
            entry.sequence = place
            entry.section = section
            entries[ObjectIdentifier(entry.object)] = entry
            contents[section.index].append(entry)
        }
        lastSequence = new.count
        for (section, content) in zip(order, contents) { section.entries = RankedEntries(sorted: content) }
        sections = order
        return firstApart
    }

    // MARK: - Changing

    /// Removes entries; sections that become empty stay until ``insert(_:by:)``.
    mutating func remove(_ gone: [ResultEntry]) {
        for entry in gone {
            entries[ObjectIdentifier(entry.object)] = nil
            entry.section?.entries.remove(entry)
            entry.section = nil
        }
    }

    /// Makes a new entry for an object, to be inserted.
    mutating func makeEntry(for object: NSManagedObject) -> ResultEntry {
        lastSequence += 1
        return ResultEntry(object, sequence: lastSequence)
    }

    /// Inserts entries, which are given in order, each with the name of its section; creates and drops sections as
    /// needed.
    ///
    /// - Returns: Whether the list of sections may have changed.
    mutating func insert(
        _ new: [(entry: ResultEntry, sectionName: String)],
        by isBefore: (ResultEntry, ResultEntry) -> Bool
    ) -> Bool {
        guard hasSections else {
            for (entry, _) in new { enter(entry, into: sections[0], isBefore) }
            return false
        }
        let former = sections
        let kept = sections.filter { !$0.entries.isEmpty }
        var made: [(section: ResultSection, position: Int)] = []
        for (entry, name) in new {
            let section = sectionsByName[name] ?? ResultSection(name: name)
            if section.entries.isEmpty {
                // The entries come in order, so the first entry of a section determines the place of the section.
                sectionsByName[name] = section
                made.append((section, position(of: entry, in: kept, isBefore)))
            }
            enter(entry, into: section, isBefore)
        }
        guard kept.count < former.count || !made.isEmpty else { return false }
        relist(former, keeping: kept, inserting: made)
        return true
    }

    private mutating func enter(
        _ entry: ResultEntry,
        into section: ResultSection,
        _ isBefore: (ResultEntry, ResultEntry) -> Bool
    ) {
        section.entries.insert(entry, by: isBefore)
        entry.section = section
        entries[ObjectIdentifier(entry.object)] = entry
    }

    private func position(
        of entry: ResultEntry,
        in sections: [ResultSection],
        _ isBefore: (ResultEntry, ResultEntry) -> Bool
    ) -> Int {
        var (low, high) = (0, sections.count)
        while low < high {
            let middle = (low + high) / 2
            if let first = sections[middle].entries.first, isBefore(first, entry) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }

    /// Puts new sections between those that were kept.
    ///
    /// O(number of sections).
    private mutating func relist(
        _ former: [ResultSection],
        keeping kept: [ResultSection],
        inserting made: [(section: ResultSection, position: Int)]
    ) {
        for section in former {
            section.formerIndex = section.index
            section.index = -1
        }
        var result: [ResultSection] = []
        result.reserveCapacity(kept.count + made.count)
        var rest = made[...]
        for position in 0...kept.count {
            while let next = rest.first, next.position <= position {
                result.append(next.section)
                rest.removeFirst()
            }
            if position < kept.count { result.append(kept[position]) }
        }
        for (index, section) in result.enumerated() { section.index = index }
        for section in former where section.index < 0 { sectionsByName[section.name] = nil }
        sections = result
    }
}
