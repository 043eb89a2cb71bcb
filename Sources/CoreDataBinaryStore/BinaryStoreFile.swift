import CoreDataEssentials
import Foundation
import StrataArchives
import StrataRows

/// The file of a binary store: a binary property list, which Docs/BinaryStore.md describes.
///
/// The time and memory for reading are proportional to the length of the file, whatever its contents.
struct BinaryStoreFile {
    /// The metadata in the file.
    let metadata: [String: Any]
    /// The highest key that any object of the store has ever had.
    let lastKey: Int64
    let objects: [Object]

    /// One object.
    struct Object {
        let entity: String
        let key: Int64
        /// The attributes that are not nil, by name; elements of composite attributes by their path.
        let values: [String: BinaryPropertyList.Node]
        /// The keys of the related objects, by the relationship's name.
        let links: [String: [Int64]]
    }

    private static let format = "StrataBinaryStore"
    private static let version: Int64 = 1

    init(metadata: [String: Any], lastKey: Int64, objects: [Object]) {
        self.metadata = metadata
        self.lastKey = lastKey
        self.objects = objects
    }

    // MARK: - Reading

    /// Reads the file of a store; `nil` if there is none.
    ///
    /// - Throws: `persistentStoreTypeMismatch` (134010) for a SQLite file, `fileReadCorruptFile` (259) for any other
    ///   file that is no binary store, `featureUnsupported` (3328) for a file of a later version, and errors of
    ///   reading.
    init?(contentsOf url: URL) throws {
        guard url.path != "/dev/null", FileManager.default.fileExists(atPath: url.path) else { return nil }
        let data = try Data(contentsOf: url)
        guard !data.starts(with: Data("SQLite format 3\0".utf8)) else {
            throw Self.failure(.persistentStoreTypeMismatch, at: url, because: "it is a SQLite file")
        }
        guard let list = try? BinaryPropertyList(data), case .dictionary(let root)? = list[list.root],
            case .string(Self.format)? = root["format"].flatMap({ list[$0] }),
            case .integer(let version)? = root["version"].flatMap({ list[$0] })
        else { throw Self.failure(.fileReadCorruptFile, at: url, because: "it is no binary store") }
        guard version == Self.version else {
            throw Self.failure(
                .featureUnsupported,
                at: url,
                because: "its format is of version \(version), which is not known here"
            )
        }
        do {
            self = try Self(list, root)
        } catch {
            throw Self.failure(.fileReadCorruptFile, at: url, because: "it is damaged")
        }
    }

    private init(_ list: BinaryPropertyList, _ root: [String: Int]) throws {
        func node(_ number: Int?) throws -> BinaryPropertyList.Node {
            guard let node = number.flatMap({ list[$0] }) else { throw BinaryPropertyList.Malformed() }
            return node
        }
        func integer(_ number: Int?) throws -> Int64 {
            guard case .integer(let value) = try node(number) else { throw BinaryPropertyList.Malformed() }
            return value
        }
        func dictionary(_ number: Int?) throws -> [String: Int] {
            guard case .dictionary(let value) = try node(number) else { throw BinaryPropertyList.Malformed() }
            return value
        }
        func array(_ number: Int?) throws -> [Int] {
            guard case .array(let value) = try node(number) else { throw BinaryPropertyList.Malformed() }
            return value
        }
        guard case .data(let plist) = try node(root["metadata"]),
            let metadata = PropertyListSerialization.dictionary(from: plist)
        else { throw BinaryPropertyList.Malformed() }
        self.metadata = metadata
        lastKey = try integer(root["lastKey"])
        // Parts that many objects share in the file are read once for each object, so the total has a limit.
        var left = list.nodes.count
        func spend(_ count: Int) throws {
            left -= count + 1
            if left < 0 { throw BinaryPropertyList.Malformed() }
        }
        var objects: [Object] = []
        for (entity, members) in try dictionary(root["objects"]).sorted(by: { $0.key < $1.key }) {
            for member in try array(members) {
                let parts = try dictionary(member)
                let values = try dictionary(parts["values"])
                try spend(values.count)
                let links = try dictionary(parts["links"]).mapValues { number in
                    let keys = try array(number)
                    try spend(keys.count)
                    return try keys.map { try integer($0) }
                }
                objects.append(
                    Object(
                        entity: entity,
                        key: try integer(parts["key"]),
                        values: try values.mapValues { try node($0) },
                        links: links
                    )
                )
            }
        }
        self.objects = objects
    }

    /// The error of a file that cannot be used.
    static func failure(_ code: CocoaError.Code, at url: URL, because reason: String) -> CocoaError {
        CocoaError.described(
            code,
            userInfo: [
                NSLocalizedDescriptionKey: "The binary store \(url.path) cannot be opened: \(reason).",
                NSFilePathErrorKey: url.path,
            ]
        )
    }

    // MARK: - Writing

    /// Writes the file completely or not at all, even if the power fails.
    ///
    /// - Parameters:
    ///   - url: The place of the file.
    ///   - replaces: Whether a file may exist there already.
    /// - Throws: `persistentStoreSave` (134030) if the metadata have values that a property list cannot contain, and
    ///   errors of writing, such as 640 (`fileWriteOutOfSpace`); the old file still exists in these cases.
    ///   `fileWriteFileExists` (516) for a file that may not be replaced.
    func write(to url: URL, replaces: Bool = true) throws {
        guard url.path != "/dev/null" else { return }
        let plist = try PropertyListSerialization.data(ofMetadata: metadata)
        var list = BinaryPropertyList()
        var members: [String: [Int]] = [:]
        for object in objects {
            let parts: [String: Int] = [
                "key": list.append(.integer(object.key)),
                "values": list.appendDictionary(object.values) { $0.append($1) },
                "links": list.appendDictionary(object.links) { list, keys in
                    let numbers = keys.map { list.append(.integer($0)) }
                    return list.append(.array(numbers))
                },
            ]
            members[object.entity, default: []].append(list.append(.dictionary(parts)))
        }
        let root: [String: Int] = [
            "format": list.append(.string(Self.format)),
            "version": list.append(.integer(Self.version)),
            "metadata": list.append(.data(plist)),
            "lastKey": list.append(.integer(lastKey)),
            "objects": list.appendDictionary(members) { $0.append(.array($1)) },
        ]
        _ = list.append(.dictionary(root))
        try WholeFile.write(list.encoded(), to: url, replaces: replaces)
    }
}

extension BinaryPropertyList {
    /// Adds a dictionary; `appendValue` adds its values, in the order of the keys.
    fileprivate mutating func appendDictionary<Value>(
        _ values: [String: Value],
        _ appendValue: (inout BinaryPropertyList, Value) -> Int
    ) -> Int {
        var entries: [String: Int] = [:]
        for (key, value) in values.sorted(by: { $0.key < $1.key }) { entries[key] = appendValue(&self, value) }
        return append(.dictionary(entries))
    }
}
