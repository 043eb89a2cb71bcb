import StrataPredicates

/// A keyed archive as a table of objects by number; reading it makes no objects.
package struct KeyedArchive {
    /// One object: a class and its fields, or a plain value.
    package struct Object {
        package let archive: KeyedArchive
        package let node: BinaryPropertyList.Node

        /// The fields by name.
        ///
        /// Empty for a plain value.
        package var fields: [String: Int] {
            if case .dictionary(let entries) = node { entries } else { [:] }
        }

        /// The names of the object's class and its superclasses; empty for a plain value.
        package var classNames: [String] {
            guard case .uid(let number)? = self["$class"], let description = archive.object(number) else { return [] }
            var names: [String] = []
            if case .array(let parts)? = description["$classes"] {
                // No class has more ancestors than this limit.
                for part in parts.prefix(16) {
                    if case .string(let name)? = archive.list[part] { names.append(name) }
                }
            }
            if case .string(let name)? = description["$classname"], names.first != name { names.insert(name, at: 0) }
            return names
        }

        /// The node of a field, or `nil`.
        package subscript(_ field: String) -> BinaryPropertyList.Node? {
            guard case .dictionary(let entries) = node else { return nil }
            return entries[field].flatMap { archive.list[$0] }
        }

        /// The numbers of the objects in a field that is an array; `nil` if it is missing or no array.
        package func references(_ field: String) -> [Int]? {
            guard case .array(let parts)? = self[field] else { return nil }
            var numbers: [Int] = []
            for part in parts {
                guard case .uid(let number)? = archive.list[part] else { return nil }
                numbers.append(number)
            }
            return numbers
        }
    }

    fileprivate let list: BinaryPropertyList
    private let objects: [Int]

    /// The number of the object under the key `root`, which `archivedData(withRootObject:)` uses.
    package let root: Int

    /// Reads the table.
    ///
    /// - Throws: ``BinaryPropertyList/Malformed`` if the data is no keyed archive in binary form.
    package init(_ data: Data) throws(BinaryPropertyList.Malformed) {
        list = try BinaryPropertyList(data)
        guard case .dictionary(let archive)? = list[list.root],
            case .array(let objects)? = archive["$objects"].flatMap({ [list] in list[$0] }),
            case .dictionary(let top)? = archive["$top"].flatMap({ [list] in list[$0] }),
            case .uid(let root)? = (top["root"] ?? top.values.first).flatMap({ [list] in list[$0] })
        else { throw BinaryPropertyList.Malformed() }
        self.objects = objects
        self.root = root
    }

    /// The number of objects.
    var count: Int { objects.count }

    /// The object with a number; `nil` if there is none, or if it is the object that represents nil.
    package func object(_ number: Int) -> Object? {
        guard number > 0, number < objects.count, let node = list[objects[number]] else { return nil }
        return Object(archive: self, node: node)
    }

    /// The node of a part of an array or of a field, by the index in the list.
    func node(_ index: Int) -> BinaryPropertyList.Node? { list[index] }
}
