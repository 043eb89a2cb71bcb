/// A part of a schema that names groups of properties.
protocol ConstraintMetadata {
    var uniqueGroups: [[AnyKeyPath]] { get }
    var indexGroups: [[AnyKeyPath]] { get }
}

extension Schema {
    /// Groups of properties whose values are together unique.
    ///
    /// ```swift
    /// @Model
    /// final class Seat {
    ///     #Unique<Seat>([\.row, \.number])
    ///     var row: Int
    ///     var number: Int
    ///     init(row: Int, number: Int) { (self.row, self.number) = (row, number) }
    /// }
    /// ```
    public final class Unique<T: PersistentModel>: SchemaProperty, CustomDebugStringConvertible, ConstraintMetadata,
        @unchecked Sendable
    {
        // @unchecked Sendable: as attributes; key paths of properties capture nothing.

        /// The key of the groups in an encoded constraint.
        ///
        /// ```swift
        /// let key = Schema.Unique<Trip>.CodingKeys.constraints.stringValue
        /// ```
        public enum CodingKeys: CodingKey {
            /// The names of the properties, by group.
            case constraints
        }

        /// The groups.
        public let constraints: [[PartialKeyPath<T>]]
        /// The name, which has no effect.
        public var name: String = ""
        /// The name in earlier versions, which has no effect.
        public var originalName: String = ""
        /// The class.
        public var valueType: any Any.Type = T.self
        /// Whether the values are unique: `true`.
        public var isUnique: Bool { true }

        var uniqueGroups: [[AnyKeyPath]] { constraints }
        var indexGroups: [[AnyKeyPath]] { [] }

        /// Names the groups.
        ///
        /// - Parameter constraints: The groups.
        public init(_ constraints: [PartialKeyPath<T>]...) { self.constraints = constraints }

        /// Reads the names of properties.
        ///
        /// - Parameter decoder: The decoder.
        /// - Throws: `DecodingError.dataCorrupted` if the class has no such property, and the errors of the decoder.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            constraints = try container.decode([[String]].self, forKey: .constraints).map {
                try GroupNames.keyPaths($0, for: .constraints, in: container)
            }
        }

        /// Writes the names of the properties.
        ///
        /// - Parameter encoder: The encoder.
        /// - Throws: The errors of the encoder.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(constraints.map(GroupNames.names), forKey: .constraints)
        }

        /// Compares the groups.
        ///
        /// - Parameters:
        ///   - lhs: One value.
        ///   - rhs: Another one.
        /// - Returns: Whether they are equal.
        public static func == (lhs: Unique<T>, rhs: Unique<T>) -> Bool { lhs.constraints == rhs.constraints }

        /// Hashes the groups.
        ///
        /// - Parameter hasher: The hasher.
        public func hash(into hasher: inout Hasher) { hasher.combine(constraints) }

        /// The class and the names in the groups.
        public var debugDescription: String { "Schema.Unique<\(T.self)>(\(constraints.map(GroupNames.names)))" }
    }

    /// Groups of properties by which a store finds objects quickly.
    ///
    /// ```swift
    /// @Model
    /// final class Visit {
    ///     #Index<Visit>([\.city, \.day])
    ///     var city: String
    ///     var day: Date
    ///     init(city: String, day: Date) { (self.city, self.day) = (city, day) }
    /// }
    /// ```
    public final class Index<T: PersistentModel>: SchemaProperty, CustomDebugStringConvertible, ConstraintMetadata,
        @unchecked Sendable
    {
        // @unchecked Sendable: as attributes; key paths of properties capture nothing.

        /// The kind of an index, with its properties.
        ///
        /// ```swift
        /// let kind = Schema.Index<Trip>.Types<Trip>.binary([\.name])
        /// ```
        public enum Types<Model: PersistentModel>: Hashable, @unchecked Sendable {
            // @unchecked Sendable: key paths of properties capture nothing.
            /// An index in the order of the values.
            case binary([PartialKeyPath<Model>])
            /// An index of ranges. It is made as a binary one.
            case rtree([PartialKeyPath<Model>])

            fileprivate var group: [PartialKeyPath<Model>] {
                switch self {
                case .binary(let group), .rtree(let group): group
                }
            }
        }

        /// The key of the groups in an encoded index.
        ///
        /// ```swift
        /// let key = Schema.Index<Trip>.CodingKeys.indices.stringValue
        /// ```
        public enum CodingKeys: CodingKey {
            /// The kinds and the names of the properties, by group.
            case indices
        }

        private struct CodedGroup: Codable {
            let kind: String
            let properties: [String]
        }

        /// The groups with the kinds of their indexes.
        public let indices: [Types<T>]
        /// The name, which has no effect.
        public var name: String = ""
        /// The name in earlier versions, which has no effect.
        public var originalName: String = ""
        /// The class.
        public var valueType: any Any.Type = T.self
        /// Whether the values are unique: `false`.
        public var isUnique: Bool { false }

        var uniqueGroups: [[AnyKeyPath]] { [] }
        var indexGroups: [[AnyKeyPath]] { indices.map(\.group) }

        /// Names the groups of binary indexes.
        ///
        /// - Parameter binaryIndices: The groups.
        public init(_ binaryIndices: [PartialKeyPath<T>]...) { indices = binaryIndices.map { .binary($0) } }

        /// Names the groups with the kinds of their indexes.
        ///
        /// - Parameter indices: The groups.
        public init(_ indices: Types<T>...) { self.indices = indices }

        /// Reads the names of properties.
        ///
        /// - Parameter decoder: The decoder.
        /// - Throws: `DecodingError.dataCorrupted` if the class has no such property, and the errors of the decoder.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            indices = try container.decode([CodedGroup].self, forKey: .indices).map { group in
                let keyPaths: [PartialKeyPath<T>] = try GroupNames.keyPaths(
                    group.properties,
                    for: .indices,
                    in: container
                )
                return group.kind == "rtree" ? .rtree(keyPaths) : .binary(keyPaths)
            }
        }

        /// Writes the kinds and the names of the properties.
        ///
        /// - Parameter encoder: The encoder.
        /// - Throws: The errors of the encoder.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            let groups = indices.map { index in
                let isRange = if case .rtree = index { true } else { false }
                return CodedGroup(kind: isRange ? "rtree" : "binary", properties: GroupNames.names(index.group))
            }
            try container.encode(groups, forKey: .indices)
        }

        /// Compares the groups and the kinds.
        ///
        /// - Parameters:
        ///   - lhs: One value.
        ///   - rhs: Another one.
        /// - Returns: Whether they are equal.
        public static func == (lhs: Index<T>, rhs: Index<T>) -> Bool { lhs.indices == rhs.indices }

        /// Hashes the groups and the kinds.
        ///
        /// - Parameter hasher: The hasher.
        public func hash(into hasher: inout Hasher) { hasher.combine(indices) }

        /// The class and the names in the groups.
        public var debugDescription: String { "Schema.Index<\(T.self)>(\(indices.map { GroupNames.names($0.group) }))" }
    }
}

/// The names of the properties of a group.
private enum GroupNames {
    static func names<T: PersistentModel>(_ group: [PartialKeyPath<T>]) -> [String] {
        group.map { ModelRecord.of(T.self).property($0).name }
    }

    static func keyPaths<T: PersistentModel, Key>(
        _ names: [String],
        for key: Key,
        in container: KeyedDecodingContainer<Key>
    ) throws -> [PartialKeyPath<T>] {
        try names.map { name in
            let property = ModelRecord.of(T.self).properties.first { $0.name == name }
            guard let keyPath = property?.keyPath as? PartialKeyPath<T> else {
                throw DecodingError.dataCorruptedError(
                    forKey: key,
                    in: container,
                    debugDescription: "SwiftData: \(name) is no stored property of \(T.self)."
                )
            }
            return keyPath
        }
    }
}
