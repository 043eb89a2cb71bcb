import StrataModelFiles

/// A model whose classes are generated into a module.
struct GeneratedModel {
    let source: ModelSource
    let module: String
    private let entities: [String: EntitySource]

    init(_ source: ModelSource, module: String) {
        self.source = source
        self.module = module
        entities = Dictionary(source.entities.map { ($0.name, $0) }) { first, _ in first }
    }

    func entity(_ name: String) -> EntitySource? { entities[name] }

    /// The class of an entity: its name and its module.
    ///
    /// The module is `nil` for the model's own.
    func classOf(_ entity: EntitySource) -> (module: String?, name: String)? {
        guard var text = entity.className, text != "NSManagedObject" else { return nil }
        if text.hasPrefix(".") { text.removeFirst() }
        guard let dot = text.firstIndex(of: ".") else { return (nil, text) }
        let module = String(text[..<dot])
        let name = String(text[text.index(after: dot)...])
        return (module == self.module ? nil : module, name)
    }

    /// The class of an entity as it is written in source.
    func spelledClass(of entityName: String) -> String {
        guard let entity = entities[entityName], let found = classOf(entity) else { return "NSManagedObject" }
        return found.name
    }

    /// The superclass of an entity's class: the class of the nearest super-entity that has one.
    func superclass(of entity: EntitySource) -> String {
        parents(of: entity).lazy.compactMap { classOf($0)?.name }.first ?? "NSManagedObject"
    }

    /// The super-entities, the nearest first.
    func parents(of entity: EntitySource) -> [EntitySource] {
        var parents: [EntitySource] = []
        var next = entity.parent
        while let name = next, let parent = entities[name], !parents.contains(where: { $0.name == name }) {
            parents.append(parent)
            next = parent.parent
        }
        return parents
    }

    /// The other modules that contain classes of the model.
    var otherModules: Set<String> {
        Set(source.entities.compactMap { classOf($0)?.module })
    }

    /// The entities for which code is generated, super-entities before sub-entities.
    var generated: [EntitySource] {
        source.entities.filter { $0.codeGeneration != .manual && classOf($0) != nil }
            .map { (depth: parents(of: $0).count, entity: $0) }
            .sorted { ($0.depth, $0.entity.name) < ($1.depth, $1.entity.name) }
            .map(\.entity)
    }

    /// The problems that prevent the generation of classes, given the declarations in the sources.
    func faults(beside declarations: SourceDeclarations) -> [ModelError] {
        var faults: [ModelError] = []
        var names: [String: String] = [:]
        for entity in generated {
            guard let found = classOf(entity) else { continue }
            if let module = found.module, entity.codeGeneration == .class {
                let reason =
                    "its class \(found.name) is in module \(module), so it cannot be generated into \(self.module). Set Codegen to Manual, or the module to the current one"
                faults.append(ModelError(.invalid, entity: entity.name, line: entity.line, reason))
            }
            if entity.codeGeneration == .class, declarations.declaresClass(found.name) {
                let reason =
                    "its class \(found.name) is in the sources of \(self.module) too. Set Codegen to Manual, or to Category for the properties alone"
                faults.append(ModelError(.invalid, entity: entity.name, line: entity.line, reason))
            }
            if let other = names.updateValue(entity.name, forKey: found.name) {
                let reason = "entity \"\(other)\" has the class \(found.name) too, which would be generated twice"
                faults.append(ModelError(.invalid, entity: entity.name, line: entity.line, reason))
            }
        }
        return faults
    }
}
