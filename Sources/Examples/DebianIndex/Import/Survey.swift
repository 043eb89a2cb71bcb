/// The result of a first pass over the indexes.
///
/// It has the number of packages, and all objects that packages will be related to.
struct Survey: Sendable {
    private(set) var packages = 0
    private(set) var notInstalled = 0
    private(set) var malformed = 0
    /// The first few malformed stanzas, with the files that contain them.
    private(set) var complaints: [String] = []
    private(set) var sections: Set<String> = []
    /// The names of maintainers by their addresses.
    private(set) var maintainers: [String: String] = [:]
    /// Every name that a package depends on or recommends.
    private(set) var names: Set<String> = []

    static let mostComplaints = 5

    init(of files: [IndexFile]) throws {
        for file in files {
            let reader = try file.open()
            while let item = try reader.next() {
                add(item, from: file)
            }
        }
    }

    private mutating func add(_ item: ControlFileReader.Item, from file: IndexFile) {
        switch item {
        case .package(let record):
            packages += 1
            if let section = record.section { sections.insert(section) }
            if let maintainer = record.maintainer, maintainers[maintainer.email] == nil {
                maintainers[maintainer.email] = maintainer.name
            }
            names.formUnion(record.dependencies)
            names.formUnion(record.recommendations)
        case .notInstalled:
            notInstalled += 1
        case .malformed(let stanza):
            malformed += 1
            if complaints.count < Self.mostComplaints { complaints.append("\(file.path), \(stanza)") }
        }
    }
}
